//! `sasl.jaas.config`: a Java login module and its options.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use zeroize::Zeroizing;

/// `class.name required name="value" … ;`
pub(super) struct LoginModule {
    /// The last part of the class's name.
    pub(super) class: String,
    options: BTreeMap<String, Zeroizing<String>>,
}

impl LoginModule {
    /// # Errors
    /// What is wrong with the text, in words. Of the text only names are in them that are known: any other word may be
    /// a part of a password that has no quotes.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut chars = text.chars().peekable();
        // No word is longer than the text: room for it keeps a password from being copied as it grows.
        let word = |chars: &mut Peekable<Chars<'_>>| word(chars, text.len());
        let path = word(&mut chars)?.ok_or("is empty: it is to name a login module")?;
        let class = path.rsplit('.').next().unwrap_or_default().to_owned();
        let mut module = Self { class, options: BTreeMap::new() };
        let flag = word(&mut chars)?.unwrap_or_default();
        if !["required", "requisite", "sufficient", "optional"].iter().any(|known| known.eq_ignore_ascii_case(&flag)) {
            return Err(format!("has no control flag, such as 'required', behind {}", module.shown_class()));
        }
        let mut last: Option<Zeroizing<String>> = None;
        while let Some(name) = word(&mut chars)? {
            skip_blanks(&mut chars);
            if chars.next_if_eq(&'=').is_none() {
                return Err(match (shown(&name), last.as_deref().and_then(|last| shown(last))) {
                    (Some(name), _) => format!("has no '=' behind the option '{name}'"),
                    (None, Some(last)) => format!(
                        "has something without a '=' behind the option '{last}': the value of '{last}' needs double \
                         quotes around it, and a \\ before each double quote in it"
                    ),
                    (None, None) => format!("has something without a '=' behind {}", module.shown_class()),
                });
            }
            let unnamed = || shown(&name).map_or_else(|| "an option".to_owned(), |name| format!("the option '{name}'"));
            let value = word(&mut chars)?.ok_or_else(|| format!("has no value for {}", unnamed()))?;
            module.options.insert(name.to_string(), value);
            last = Some(name);
        }
        match chars.next() {
            Some(';') => {}
            Some('=') => {
                let whose = last.as_deref().and_then(|last| shown(last));
                let whose = whose.map_or_else(String::new, |last| format!(" of '{last}'"));
                return Err(format!("has a '=' too many: the value{whose} needs double quotes around it, as in Java"));
            }
            _ => return Err("has no ';' at its end".to_owned()),
        }
        skip_blanks(&mut chars);
        if chars.peek().is_some() {
            // What a password without quotes loses at its first ';' would only show as a wrong password.
            return Err(
                "has something behind its first ';': there is one login module, whose values need double quotes \
                        around them where they have a ';'"
                    .to_owned(),
            );
        }
        Ok(module)
    }

    /// The class as an error may name it.
    pub(super) fn shown_class(&self) -> &str {
        let is_one = self.class.ends_with("LoginModule") && self.class.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_one { &self.class } else { "a class that is no login module" }
    }

    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(|value| value.as_str())
    }

    /// The option, which the module cannot do without.
    pub(super) fn required(&self, name: &str) -> Result<&str, String> {
        self.option(name).ok_or_else(|| format!("has no option '{name}', which {} needs", self.shown_class()))
    }

    /// The options whose names begin so, by the rest of their names.
    pub(super) fn options_after<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.options.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}

/// The name of an option, if it is a known one.
fn shown(name: &str) -> Option<&str> {
    const KNOWN: &[&str] = &[
        "awsProfileName",
        "awsRoleArn",
        "awsRoleSessionName",
        "awsStsRegion",
        "clientId",
        "clientSecret",
        "keyTab",
        "password",
        "principal",
        "scope",
        "serviceName",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "storeKey",
        "tokenauth",
        "unsecuredLoginLifetimeSeconds",
        "unsecuredLoginStringClaim_sub",
        "useKeyTab",
        "useTicketCache",
        "username",
    ];
    KNOWN.contains(&name).then_some(name)
}

/// A word or a quoted text; nothing before a `;` and at the end.
fn word(chars: &mut Peekable<Chars<'_>>, room: usize) -> Result<Option<Zeroizing<String>>, String> {
    skip_blanks(chars);
    let mut word = Zeroizing::new(String::with_capacity(room));
    if let Some(quote) = chars.next_if(|c| matches!(c, '"' | '\'')) {
        loop {
            match chars.next() {
                None => return Err(format!("has a {quote} without another")),
                Some(end) if end == quote => return Ok(Some(word)),
                Some('\\') => match escaped(chars) {
                    None => return Err(format!("has a {quote} without another")),
                    Some(meant) => word.push(meant),
                },
                Some(other) => word.push(other),
            }
        }
    }
    while let Some(next) = chars.next_if(|c| !c.is_whitespace() && !matches!(c, '=' | ';' | '"')) {
        word.push(next);
    }
    Ok((!word.is_empty()).then_some(word))
}

/// What stands behind a backslash, as Java's `StreamTokenizer` takes it.
fn escaped(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    Some(match chars.next()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        first @ '0'..='7' => {
            // Up to \377.
            let most = if first <= '3' { 2 } else { 1 };
            let mut code = u32::from(first) - u32::from('0');
            for _ in 0..most {
                let Some(digit) = chars.next_if(|c| matches!(c, '0'..='7')) else { break };
                code = 8 * code + u32::from(digit) - u32::from('0');
            }
            char::from_u32(code)?
        }
        other => other,
    })
}

/// Skips blanks, and comments as Java has them.
fn skip_blanks(chars: &mut Peekable<Chars<'_>>) {
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut ahead = chars.clone();
        match (ahead.next(), ahead.next()) {
            (Some('/'), Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            (Some('/'), Some('*')) => {
                *chars = ahead;
                while let Some(next) = chars.next() {
                    if next == '*' && chars.next_if(|c| *c == '/').is_some() {
                        break;
                    }
                }
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_and_its_options_are_read() {
        let text = "org.apache.kafka.common.security.plain.PlainLoginModule required\n  username=alice \
                    password=\"a \\\"b\\\\ ;=c\" unsecured_x='y';";

        let module = LoginModule::read(text).expect("a good text");

        assert_eq!(module.class, "PlainLoginModule");
        assert_eq!((module.option("username"), module.option("password")), (Some("alice"), Some("a \"b\\ ;=c")));
        assert_eq!(module.options_after("unsecured_").collect::<Vec<_>>(), [("x", "y")]);
        assert!(module.required("scope").expect_err("it is not there").contains("'scope'"));
    }

    /// As Java's own parser reads them, which `JaasConfig` of 4.4.0 was asked for.
    #[test]
    fn escapes_and_comments_are_those_of_java() {
        let text = "// who\nx.PlainLoginModule /* must */ required username=\"a\\055b\\7\\477\\a\\q\" // the user\n\
                    password=\"//no/*comment\\\\*/\" /**/; // the end\n/* ; */ ";

        let module = LoginModule::read(text).expect("a good text");

        assert_eq!(module.option("username"), Some("a-b\u{7}'7\u{7}q"));
        assert_eq!(module.option("password"), Some("//no/*comment\\*/"));
    }

    #[test]
    fn what_is_wrong_is_told_without_values() {
        let fault = |text: &str| LoginModule::read(text).err().expect("a bad text");

        assert!(fault(" ").contains("is empty"));
        assert!(fault("a.B username=x;").contains("control flag"));
        assert!(fault("a.B required username;").contains("no '=' behind the option 'username'"));
        assert!(fault("a.B required username=;").contains("no value"));
        assert!(fault("a.B required password=\"hunter2;").contains("without another"));
        let unended = fault("a.B required password=hunter2");
        assert!(unended.contains("no ';'") && !unended.contains("hunter2"));
        for more in ["cd;", "b.OtherLoginModule required;", "hunter2"] {
            let fault = fault(&format!("a.PlainLoginModule required password=ab;{more}"));
            assert!(fault.contains("behind its first ';'") && !fault.contains(more), "{fault}");
        }
        for torn in
            ["hunter2==", "Endpoint=sb://hunter2/", "my hunter2", "my\"hunter2\"", "\"x\"hunter2\"", "it's hunter2 x"]
        {
            let fault = fault(&format!("a.PlainLoginModule required username=a password={torn};"));
            assert!(fault.contains("the value of 'password' needs double quotes"), "{fault}");
            assert!(!fault.contains("hunter2"), "{fault}");
        }
        assert!(fault("hunter2").contains("behind a class that is no login module"));
        assert!(fault("a.PlainLoginModule required hunter2;").contains("without a '=' behind PlainLoginModule"));
        assert!(fault("a.PlainLoginModule required username=a hunter2=;").contains("no value for an option"));
    }
}
