//! The regular expressions of RE2, in which members of KIP-848 subscribe and transactional ids are listed.
//!
//! Kafka compiles them with RE2/J and wants the whole name to match. Here they are turned into the syntax of the crate
//! `regex`, which by itself takes some things that RE2/J refuses (`a**`, `(?x)`, `a{1001}`) or reads in another way
//! (`[[a]`, `[a&&b]`, `\<`), and refuses some that RE2/J takes (`\Q…\E`, a `{` that stands for itself).

use regex::{Regex, RegexBuilder};

/// RE2's bound on the numbers in `{n,m}`.
const MAX_REPEAT: u32 = 1000;

/// What a compiled expression may take up. RE2/J knows no bound; one that is larger than this is refused.
const MAX_SIZE: usize = 10 * 1024 * 1024;

/// An expression that was compiled.
#[derive(Debug)]
pub(crate) struct Expression {
    regex: Regex,
}

impl Expression {
    /// Compiles an expression; says what is wrong with it if it is none of RE2.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let translated = Translation::of(text)?;
        let whole = format!("^(?:{translated})$");
        let built = RegexBuilder::new(&whole).unicode(true).size_limit(MAX_SIZE).build();
        built.map(|regex| Self { regex }).map_err(|error| first_line(&error.to_string()))
    }

    /// Whether the whole of a name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }
}

/// The parser's errors draw a picture of many lines, the last of which says what is wrong.
fn first_line(error: &str) -> String {
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// An expression on its way into the other syntax.
struct Translation<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    /// Whether the last thing was a repetition: RE2 refuses another one behind it.
    was_repeated: bool,
    /// How many groups are open. What is closed twice would end the group that stands around it all.
    depth: usize,
}

impl<'a> Translation<'a> {
    fn of(text: &'a str) -> Result<String, String> {
        let mut translation = Self { rest: text.chars().peekable(), out: String::new(), was_repeated: false, depth: 0 };
        while let Some(next) = translation.rest.next() {
            translation.take(next)?;
        }
        Ok(translation.out)
    }

    fn take(&mut self, next: char) -> Result<(), String> {
        let was_repeated = std::mem::take(&mut self.was_repeated);
        match next {
            '*' | '+' | '?' => self.repeat(was_repeated, &next.to_string())?,
            '{' => match self.counts() {
                Some(counts) => {
                    check_counts(&counts)?;
                    self.repeat(was_repeated, &format!("{{{counts}}}"))?;
                }
                // RE2 takes a brace that begins no repetition for itself.
                None => self.out.push_str("\\{"),
            },
            '}' => self.out.push_str("\\}"),
            '[' => self.class()?,
            ']' => self.out.push_str("\\]"),
            '(' => self.group()?,
            ')' => {
                self.depth = self.depth.checked_sub(1).ok_or("unexpected `)`")?;
                self.out.push(')');
            }
            '\\' => self.escape()?,
            _ => self.out.push(next),
        }
        Ok(())
    }

    fn repeat(&mut self, was_repeated: bool, operator: &str) -> Result<(), String> {
        if was_repeated {
            return Err(format!("invalid nested repetition operator: `{operator}`"));
        }
        self.out.push_str(operator);
        if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        self.was_repeated = true;
        Ok(())
    }

    /// What stands between braces, if it is `n`, `n,` or `n,m`.
    fn counts(&mut self) -> Option<String> {
        let ahead: String = self.rest.clone().take_while(|c| *c != '}').collect();
        let is_closed = self.rest.clone().nth(ahead.chars().count()) == Some('}');
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_count = match ahead.split_once(',') {
            None => is_number(&ahead),
            Some((from, to)) => is_number(from) && (to.is_empty() || is_number(to)),
        };
        if !is_closed || !is_count {
            return None;
        }
        self.rest.nth(ahead.chars().count());
        Some(ahead)
    }

    /// Copies a class, in which RE2 knows neither classes inside nor operations.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            match self.rest.next() {
                None => return Err("missing closing ]".to_owned()),
                Some(']') if !is_first => {
                    self.out.push(']');
                    return Ok(());
                }
                Some('[') if self.rest.peek() == Some(&':') => self.posix()?,
                Some('\\') => self.escape_in_class()?,
                Some(from) => self.range(from)?,
            }
            is_first = false;
        }
    }

    /// Copies a character of a class, or a range from it.
    fn range(&mut self, from: char) -> Result<(), String> {
        self.out.push_str(&in_class(from));
        let mut ahead = self.rest.clone();
        let (dash, to) = (ahead.next(), ahead.next());
        if dash != Some('-') || to == Some(']') || to.is_none() {
            return Ok(());
        }
        self.rest.next();
        self.out.push('-');
        match self.rest.next() {
            Some('\\') => self.escape_in_class(),
            Some(to) if to >= from => {
                self.out.push_str(&in_class(to));
                Ok(())
            }
            _ => Err("invalid character class range".to_owned()),
        }
    }

    /// Copies `[:alpha:]`, if it is one; a bracket that begins none stands for itself.
    fn posix(&mut self) -> Result<(), String> {
        let ahead: String = self.rest.clone().skip(1).take_while(|c| c.is_ascii_alphabetic() || *c == '^').collect();
        let closes = self.rest.clone().skip(1 + ahead.len()).take(2).eq([':', ']']);
        if !closes {
            self.out.push_str("\\[");
            return Ok(());
        }
        let name = ahead.trim_start_matches('^');
        let names = ["alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space"];
        if !names.contains(&name) && !["upper", "word", "xdigit"].contains(&name) {
            return Err(format!("invalid character class range: `[:{ahead}:]`"));
        }
        self.out.push_str(&format!("[:{ahead}:]"));
        self.rest.nth(ahead.len() + 2);
        Ok(())
    }

    fn escape_in_class(&mut self) -> Result<(), String> {
        match self.rest.next() {
            None => Err("trailing backslash at end of expression".to_owned()),
            Some('b' | 'B' | 'A' | 'z' | 'Q' | 'E' | 'C') => Err("invalid escape sequence".to_owned()),
            Some(next) => self.escaped(next),
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.rest.next() {
            None => Err("trailing backslash at end of expression".to_owned()),
            Some('Q') => {
                self.quoted();
                Ok(())
            }
            Some(next @ ('C' | 'E')) => Err(format!("invalid escape sequence: `\\{next}`")),
            Some(anchor @ ('A' | 'z' | 'b' | 'B')) => {
                self.out.extend(['\\', anchor]);
                Ok(())
            }
            Some(next) => self.escaped(next),
        }
    }

    /// A class of Unicode or a code point, in braces. RE2 turns a class into its opposite by a caret, too.
    fn named(&mut self, kind: char) -> Result<(), String> {
        self.rest.next();
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(next) => name.push(next),
                None => return Err(format!("invalid character class range: `\\{kind}{{{name}`")),
            }
        }
        let (kind, name) = match (kind, name.strip_prefix('^')) {
            ('p', Some(name)) => ('P', name),
            ('P', Some(name)) => ('p', name),
            _ => (kind, &*name),
        };
        self.out.push_str(&format!("\\{kind}{{{name}}}"));
        Ok(())
    }

    /// An escape that means the same inside a class and outside.
    fn escaped(&mut self, next: char) -> Result<(), String> {
        match next {
            'p' | 'P' | 'x' if self.rest.peek() == Some(&'{') => self.named(next),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'p' | 'P' | 'x' => {
                self.out.extend(['\\', next]);
                Ok(())
            }
            '0' => self.octal(next),
            '1'..='7' if self.rest.peek().is_some_and(|c| ('0'..='7').contains(c)) => self.octal(next),
            _ if next.is_ascii_punctuation() => {
                self.out.push_str(&regex::escape(&next.to_string()));
                Ok(())
            }
            _ if !next.is_ascii() => {
                self.out.push(next);
                Ok(())
            }
            _ => Err(format!("invalid escape sequence: `\\{next}`")),
        }
    }

    fn octal(&mut self, first: char) -> Result<(), String> {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.rest.next_if(|c| ('0'..='7').contains(c)).and_then(|c| c.to_digit(8)) else { break };
            code = code * 8 + digit;
        }
        self.out.push_str(&format!("\\x{{{code:x}}}"));
        Ok(())
    }

    /// Text between `\Q` and `\E` stands for itself.
    fn quoted(&mut self) {
        let rest: String = self.rest.clone().collect();
        let text = rest.split("\\E").next().unwrap_or_default();
        self.out.push_str(&regex::escape(text));
        let read = text.chars().count() + if rest.len() > text.len() { 2 } else { 0 };
        for _ in 0..read {
            self.rest.next();
        }
    }

    /// Copies the start of a group. The flags of RE2 are `i`, `m`, `s` and `U`.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        self.depth += 1;
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        if let Some(&next) = self.rest.peek().filter(|c| ['P', '<'].contains(*c)) {
            self.rest.next();
            self.out.push(next);
            let is_named = next == '<' || self.rest.peek() == Some(&'<');
            return if is_named { Ok(()) } else { Err("invalid named capture".to_owned()) };
        }
        loop {
            match self.rest.next() {
                Some(flag @ ('i' | 'm' | 's' | 'U' | '-')) => self.out.push(flag),
                Some(':') => {
                    self.out.push(':');
                    return Ok(());
                }
                Some(')') => return self.take(')'),
                _ => return Err("missing argument to repetition operator, or invalid flags behind `(?`".to_owned()),
            }
        }
    }
}

/// A character that stands for itself in a class.
fn in_class(character: char) -> String {
    if character.is_ascii_punctuation() { format!("\\{character}") } else { character.to_string() }
}

fn check_counts(counts: &str) -> Result<(), String> {
    let numbers = counts.split(',').filter(|number| !number.is_empty()).map(str::parse::<u32>);
    let is_legal = numbers.collect::<Result<Vec<u32>, _>>().is_ok_and(|numbers| {
        numbers.iter().all(|number| *number <= MAX_REPEAT) && numbers.windows(2).all(|pair| pair[0] <= pair[1])
    });
    if is_legal { Ok(()) } else { Err(format!("invalid repeat count: `{{{counts}}}`")) }
}

#[cfg(test)]
mod tests {
    use super::Expression;

    #[test]
    fn whole_names_match() {
        let table = [
            ("foo*", "fooo", true),
            ("foo*", "xfoo", false),
            ("foo|bar", "bar", true),
            ("foo|bar", "foobar", false),
            ("", "", true),
            ("", "a", false),
            (r"\Qa.b\E.*", "a.bc", true),
            (r"\Qa.b\E.*", "axbc", false),
            ("[[a]", "[", true),
            ("[a&&b]", "&", true),
            ("[a&&b-]", "-", true),
            ("[+--]", ",", true),
            ("a{,2}", "a{,2}", true),
            ("a{2}", "aa", true),
            ("(?i)ABC", "abc", true),
            (r"\141", "a", true),
            ("[[:alpha:]_]+", "ab_c", true),
            (r"\<a", "<a", true),
            ("a??b", "b", true),
            ("[]a]", "]", true),
            ("(?i)(a|(b))c", "BC", true),
            (r"\p{L}+", "ab", true),
            (r"\p{^L}", "a", false),
            (r"\P{^L}", "a", true),
            (r"[\p{Lu}_]", "_", true),
            (r"\x{61}", "a", true),
        ];

        for (pattern, name, matches) in table {
            let expression = Expression::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(expression.matches(name), matches, "{pattern} and {name}");
        }
    }

    #[test]
    fn what_is_none_of_re2_is_refused() {
        for pattern in [
            "[",
            "(",
            ")",
            "a)|(b",
            "*",
            "a**",
            "a{2}{3}",
            "a{1001}",
            "a{3,2}",
            r"\1",
            "(?=a)",
            "(?!a)",
            "(?x)a",
            r"\C",
            r"a\",
            "(?P=name)",
            "[z-a]",
            "[a--z]",
            r"\pX",
            "[[:nope:]]",
            r"\y",
            r"\Efoo",
            r"\p{Foo}",
            r"\p{L",
        ] {
            assert!(Expression::new(pattern).is_err(), "{pattern}");
        }
    }
}
