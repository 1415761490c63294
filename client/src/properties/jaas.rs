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
    /// What is wrong with the text, in words. No value is in them.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut chars = text.chars().peekable();
        let path = word(&mut chars)?.ok_or("is empty: it is to name a login module")?;
        let class = path.rsplit('.').next().unwrap_or_default().to_owned();
        let flag = word(&mut chars)?.unwrap_or_default();
        if !["required", "requisite", "sufficient", "optional"].iter().any(|known| known.eq_ignore_ascii_case(&flag)) {
            return Err("has no control flag, such as 'required', behind the class of its login module".to_owned());
        }
        let mut options = BTreeMap::new();
        let mut before = "the control flag".to_owned();
        while let Some(name) = word(&mut chars)? {
            skip_blanks(&mut chars);
            if chars.next_if_eq(&'=').is_none() {
                // What looks like a name may be the rest of a password with a blank or a quote in it.
                return Err(format!("has a word without a '=' behind {before}: put values between quotes"));
            }
            before = shown(&name);
            let value = word(&mut chars)?.ok_or_else(|| format!("has no value for {before}"))?;
            options.insert(name.to_string(), value);
        }
        if chars.next() != Some(';') {
            return Err("has no ';' at its end".to_owned());
        }
        Ok(Self { class, options })
    }

    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(|value| value.as_str())
    }

    /// The option, which the module cannot do without.
    pub(super) fn required(&self, name: &str) -> Result<&str, String> {
        self.option(name).ok_or_else(|| format!("has no option '{name}', which {} needs", self.class))
    }

    /// The options whose names begin so, by the rest of their names.
    pub(super) fn options_after<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.options.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}

/// An option to be named in an error: only if its name is one, and not perhaps a part of a secret.
fn shown(name: &str) -> String {
    const KNOWN: [&str; 7] =
        ["username", "password", "tokenauth", "clientId", "clientSecret", "scope", "unsecuredLoginStringClaim_sub"];
    match KNOWN.contains(&name) {
        true => format!("the option '{name}'"),
        false => "an option".to_owned(),
    }
}

/// A word or a quoted text; nothing before a `;` and at the end.
fn word(chars: &mut Peekable<Chars<'_>>) -> Result<Option<Zeroizing<String>>, String> {
    skip_blanks(chars);
    let mut word = Zeroizing::new(String::new());
    if let Some(quote) = chars.next_if(|c| matches!(c, '"' | '\'')) {
        loop {
            match chars.next() {
                None => return Err(format!("has a {quote} without another")),
                Some(end) if end == quote => return Ok(Some(word)),
                Some('\\') => match chars.next() {
                    None => return Err(format!("has a {quote} without another")),
                    Some('n') => word.push('\n'),
                    Some('t') => word.push('\t'),
                    Some(other) => word.push(other),
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

fn skip_blanks(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| c.is_whitespace()).is_some() {}
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

    #[test]
    fn what_is_wrong_is_told_without_values() {
        let fault = |text: &str| LoginModule::read(text).err().expect("a bad text");

        assert!(fault(" ").contains("is empty"));
        assert!(fault("a.B username=x;").contains("control flag"));
        assert!(fault("a.B required username;").contains("without a '=' behind the control flag"));
        assert!(fault("a.B required username=;").contains("no value"));
        assert!(fault("a.B required password=\"hunter2;").contains("without another"));
        let unended = fault("a.B required password=hunter2");
        assert!(unended.contains("no ';'") && !unended.contains("hunter2"));
    }

    /// Whatever is wrong with the quotes of a password, no part of it is told.
    #[test]
    fn a_password_without_quotes_is_not_told() {
        for value in ["my hunter2", "my\"hunter2\"", "\"x\"hunter2", "hunter2 hunter2=", "x hunter2 y", "\"hunter2"] {
            let text = format!("a.B required username=alice password={value};");

            let fault = LoginModule::read(&text).err().expect("a bad text");

            assert!(!fault.contains("hunter2"), "{fault}");
        }
        let fault = LoginModule::read("hunter2").err().expect("it is no module");
        assert!(!fault.contains("hunter2"), "{fault}");
    }
}
