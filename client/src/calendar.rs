//! [`Moment`]: a point in time as calendars and clocks show it, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// A day and a time of day, by the Gregorian calendar. Times before 1970 are its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) year: u64,
    pub(crate) month: u64,
    pub(crate) day: u64,
    pub(crate) hour: u64,
    pub(crate) minute: u64,
    pub(crate) second: u64,
}

impl Moment {
    /// The moment so many seconds after the beginning of 1970.
    pub(crate) const fn of_seconds(seconds: u64) -> Self {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Years begin in March here, so that the leap day is the last one; 400 of them have 146,097 days.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self {
            year: 400 * era + year_of_era + (month <= 2) as u64,
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: rest / 3_600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    /// The moment of a time.
    pub(crate) fn of(time: SystemTime) -> Self {
        Self::of_seconds(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(seconds: u64) -> String {
        let Moment { year, month, day, hour, minute, second } = Moment::of_seconds(seconds);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }

    #[test]
    fn a_moment_is_that_of_the_calendar() {
        assert_eq!(shown(0), "1970-01-01 00:00:00");
        assert_eq!(shown(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(shown(1_709_251_199), "2024-02-29 23:59:59");
        assert_eq!(shown(1_709_251_200), "2024-03-01 00:00:00");
        assert_eq!(shown(4_102_444_800), "2100-01-01 00:00:00");
        assert_eq!(shown(4_107_542_400), "2100-03-01 00:00:00");
    }
}
