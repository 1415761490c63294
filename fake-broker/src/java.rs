//! What Kafka owes to Java where a client can see it: how strings are hashed, and in which order tables are walked.

use krafka_protocol::Str;

/// Java's hash of a string.
pub(crate) fn hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Different keys in the order in which a `HashMap` is walked that they were put into one after the other.
///
/// A table begins with sixteen places, and is doubled whenever it is full by more than three quarters. Keys at one
/// place keep their order.
pub(crate) fn map_order(mut keys: Vec<Str>) -> Vec<Str> {
    let mut places: usize = 16;
    while keys.len() > places / 4 * 3 {
        places *= 2;
    }
    keys.sort_by_key(|key| {
        let hash = hash(key).cast_unsigned();
        usize::try_from(hash ^ (hash >> 16)).unwrap_or(0) & (places - 1)
    });
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(keys: &[&str]) -> Vec<String> {
        map_order(keys.iter().map(|&key| Str::from(key)).collect()).iter().map(ToString::to_string).collect()
    }

    /// What a JVM prints, of a table as it begins and of one that was doubled. The last two keys have one hash.
    #[test]
    fn keys_are_walked_as_a_jvm_walks_them() {
        let few: Vec<String> = (1..=5).map(|n| format!("k{n}-985c")).collect();
        let many: Vec<String> = (1..=13).map(|n| format!("k{n}-985c")).collect();
        let numbers = |keys: &[String]| -> Vec<String> {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            walked(&keys).iter().map(|key| key[1..key.len() - 5].to_owned()).collect()
        };

        assert_eq!(numbers(&few), ["5", "2", "3", "1", "4"]);
        assert_eq!(numbers(&many), ["3", "7", "13", "11", "5", "2", "8", "12", "1", "4", "6", "10", "9"]);
        assert_eq!(walked(&["BB", "Aa"]), ["BB", "Aa"]);
    }
}
