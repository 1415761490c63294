//! The command line that all peers understand: a workload, then `--name value` pairs.

use std::collections::BTreeMap;

/// The arguments of one run. Names that a workload does not know are ignored, as the driver passes the same to all.
pub(crate) struct Arguments {
    pub(crate) mode: String,
    values: BTreeMap<String, String>,
}

impl Arguments {
    /// Reads the arguments behind the program's name.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mode = arguments.next().ok_or("which workload? produce, consume, latency or first")?;
        let mut values = BTreeMap::new();
        while let Some(name) = arguments.next() {
            let plain =
                name.strip_prefix("--").ok_or_else(|| format!("{name:?} is no option: expected --name value"))?;
            let value = arguments.next().ok_or_else(|| format!("{name} has no value"))?;
            values.insert(plain.to_owned(), value);
        }
        Ok(Self { mode, values })
    }

    /// The value of an option, or its default.
    pub(crate) fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.values.get(name).map_or(default, String::as_str)
    }

    /// The value of an option that is a number, or its default.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64, String> {
        match self.values.get(name) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| format!("--{name} {value}: expected a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_have_values_and_defaults() {
        let arguments = parse("produce --records 5 --topic t").expect("a valid line");

        assert_eq!(arguments.mode, "produce");
        assert_eq!((arguments.number("records", 1), arguments.number("size", 100)), (Ok(5), Ok(100)));
        assert_eq!((arguments.text("topic", "bench"), arguments.text("acks", "all")), ("t", "all"));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, named) in [("", "workload"), ("produce --topic", "--topic"), ("produce records", "records")] {
            let error = parse(line).err().expect("a mistake");
            assert!(error.contains(named), "{error}");
        }
        let error = parse("produce --records many").and_then(|arguments| arguments.number("records", 1));
        assert_eq!(error, Err("--records many: expected a number".to_owned()));
    }
}
