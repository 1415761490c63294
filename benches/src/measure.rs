//! What a run cost: wall time, CPU time, memory and context switches of this process, as one line of JSON.
//!
//! The figures are those of `getrusage`, read from `/proc` (there is no call for it in safe Rust): user and system time
//! come in ticks of 10 ms, so the CPU time of the run itself is taken from the scheduler, in nanoseconds.

use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;

/// Nanoseconds since it was made.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "real time is what a benchmark measures")]
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Never zero, which marks the records of a warm-up.
    pub(crate) fn nanos(self) -> u64 {
        self.0.elapsed().as_nanos() as u64 + 1
    }

    /// Sleeps on the calling thread, which is more exact than the runtime's timer of a millisecond.
    pub(crate) fn sleep_until(self, nanos: u64) {
        std::thread::sleep(Duration::from_nanos(nanos.saturating_sub(self.nanos())));
    }
}

/// One run, from its start to the line that it prints.
pub(crate) struct Run {
    clock: Clock,
    start: (u64, f64),
    half: Option<(u64, f64)>,
}

impl Run {
    pub(crate) fn start(clock: Clock) -> Self {
        Self { clock, start: (clock.nanos(), cpu_seconds()), half: None }
    }

    /// Half of the records are done: what follows is without the start-up.
    pub(crate) fn half(&mut self) {
        self.half = Some((self.clock.nanos(), cpu_seconds()));
    }

    /// Prints the line. `extra` is further members of the JSON object.
    pub(crate) fn finish(&self, mode: &str, records: u64, bytes: u64, extra: &str) {
        let (end, cpu) = (self.clock.nanos(), cpu_seconds());
        let since = |(nanos, used): (u64, f64)| ((end - nanos) as f64 / 1e9, cpu - used);
        let (seconds, cpu_run) = since(self.start);
        let (half_seconds, half_cpu) = since(self.half.unwrap_or(self.start));
        let (user, sys) = user_and_system();
        let (voluntary, involuntary) = switches();
        let separator = if extra.is_empty() { "" } else { "," };
        println!(
            "{{\"client\":\"krafka\",\"mode\":\"{mode}\",\"records\":{records},\"bytes\":{bytes},\
             \"seconds\":{seconds:.4},\"user\":{user:.4},\"sys\":{sys:.4},\"cpu_run\":{cpu_run:.4},\
             \"half_seconds\":{half_seconds:.4},\"half_cpu\":{half_cpu:.4},\"rss_mb\":{:.1},\
             \"vcsw\":{voluntary},\"ivcsw\":{involuntary}{separator}{extra}}}",
            peak_mb(),
        );
    }
}

/// Median, 99 %, 99.9 % and the greatest of samples in nanoseconds, as members of a JSON object in milliseconds.
pub(crate) fn quantiles(prefix: &str, samples: &mut [u64]) -> String {
    samples.sort_unstable();
    let Some(last) = samples.len().checked_sub(1) else {
        return format!("\"{prefix}_n\":0");
    };
    let at = |share: f64| samples[((samples.len() as f64 * share) as usize).min(last)] as f64 / 1e6;
    format!(
        "\"{prefix}_n\":{},\"{prefix}_p50\":{:.3},\"{prefix}_p99\":{:.3},\"{prefix}_p999\":{:.3},\
         \"{prefix}_max\":{:.3}",
        samples.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
    )
}

/// The values to send, the same for every peer where their file is there.
pub(crate) fn values(size: usize) -> Vec<Bytes> {
    let folder = std::env::var("BENCH_DATA").unwrap_or_else(|_| "data".to_owned());
    let all = fs::read(format!("{folder}/payload-{size}.bin")).unwrap_or_else(|_| made_up(size));
    let all = Bytes::from(all);
    (0..all.len() / size.max(1)).map(|index| all.slice(index * size..(index + 1) * size)).collect()
}

/// Text of words and numbers that compresses about as JSON does.
fn made_up(size: usize) -> Vec<u8> {
    const VALUES: usize = 10_000;
    let mut all = Vec::with_capacity(VALUES * size);
    for id in 0..VALUES as u64 {
        let mut value = Vec::with_capacity(size + 40);
        let mut random = id;
        while value.len() < size {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            value.extend_from_slice(format!(r#"{{"id":{id},"user":"{:08x}"}}"#, random >> 32).as_bytes());
        }
        all.extend_from_slice(&value[..size]);
    }
    all
}

/// CPU seconds of the threads of this process. Those that ended do not count; a runtime keeps its own.
fn cpu_seconds() -> f64 {
    let nanos = |text: String| text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok());
    let total: u64 = threads("schedstat").filter_map(nanos).sum();
    if total == 0 {
        let (user, sys) = user_and_system();
        return user + sys;
    }
    total as f64 / 1e9
}

/// User and system seconds of the process.
fn user_and_system() -> (f64, f64) {
    /// Linux counts in these, whatever the kernel's own clock.
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse().unwrap_or(0.0) / TICKS_A_SECOND);
    (ticks.next().unwrap_or(0.0), ticks.next().unwrap_or(0.0))
}

/// Peak resident memory of this program. `ru_maxrss` would count what the parent had before it started this one.
fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    number_behind(&status, "VmHWM:") as f64 / 1024.0
}

/// Voluntary and involuntary context switches of the threads of this process.
fn switches() -> (u64, u64) {
    threads("status").fold((0, 0), |(voluntary, involuntary), status| {
        (
            voluntary + number_behind(&status, "voluntary_ctxt_switches:"),
            involuntary + number_behind(&status, "nonvoluntary_ctxt_switches:"),
        )
    })
}

fn number_behind(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A file of each thread of this process.
fn threads(file: &str) -> impl Iterator<Item = String> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(move |task| fs::read_to_string(task.path().join(file)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_up_as_cpu_time_and_memory() {
        let before = cpu_seconds();

        let all = made_up(100);

        assert_eq!(all.len(), 1_000_000);
        assert!(cpu_seconds() > before);
        assert!(peak_mb() > 1.0);
    }

    #[test]
    fn quantiles_are_samples() {
        let mut samples: Vec<u64> = (1..=1000).rev().map(|millis| millis * 1_000_000).collect();

        let json = quantiles("ack", &mut samples);

        assert_eq!(json, r#""ack_n":1000,"ack_p50":501.000,"ack_p99":991.000,"ack_p999":1000.000,"ack_max":1000.000"#);
        assert_eq!(quantiles("e2e", &mut []), r#""e2e_n":0"#);
    }
}
