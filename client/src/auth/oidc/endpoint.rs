//! [`Endpoint`]: the URL of a token endpoint, taken apart.

use std::fmt;

use zeroize::Zeroizing;

use crate::auth::Secret;

/// `http(s)://host[:port]/path[?query]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    is_https: bool,
    host: String,
    port: u16,
    /// The path and the query, from the `/` on.
    target: String,
}

impl Endpoint {
    /// # Errors
    /// What is wrong, in words. The URL is not in them: it may have a password in it.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("its URL has no scheme: write https://…")?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(format!("its URL begins with {scheme}: it must be https, or http")),
        };
        // A fragment is the reader's own, and never sent.
        let rest = rest.split_once('#').map_or(rest, |(front, _)| front);
        let (authority, target) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err("its URL has a user in it: give the client's id and secret by themselves".to_owned());
        }
        let is_bracketed = authority.starts_with('[');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !is_bracketed || host.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or("the port in its URL is no number from 1 to 65535")?)
            }
            _ => (authority, if is_https { 443 } else { 80 }),
        };
        let host = match host.strip_prefix('[') {
            Some(bracketed) => bracketed.strip_suffix(']').ok_or("its URL has a '[' without a ']'")?,
            None if host.contains(':') => return Err("its URL has an IPv6 address without brackets".to_owned()),
            None => host,
        };
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&byte)) {
            return Err("its URL has no host, or one with a character that no host name has".to_owned());
        }
        if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("its URL has a blank, or a character that needs a percent sign".to_owned());
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { is_https, host: host.to_owned(), port, target: format!("{slash}{target}") })
    }

    pub(super) fn is_https(&self) -> bool {
        self.is_https
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What stands behind `POST`.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The values in the query, one of which may be secret: as they stand there, and what that means.
    pub(super) fn values(&self) -> impl Iterator<Item = Secret> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let values = query.split('&').filter_map(|parameter| parameter.split_once('=')).map(|(_, value)| value);
        values.flat_map(|value| [Secret::new(value), decoded(value)])
    }

    /// The header `Host`: without the port where it is the scheme's own, as some servers insist.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.is_https, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// What is meant by a value in a query.
fn decoded(value: &str) -> Secret {
    let mut bytes = Zeroizing::new(Vec::with_capacity(value.len()));
    let mut rest = value.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(if first == b'+' { b' ' } else { first }));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    Secret::new(String::from_utf8_lossy(&bytes))
}

/// Without its query, which may hold a secret.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        let path = self.target.split_once('?').map_or(&*self.target, |(path, _)| path);
        write!(f, "{scheme}://{}{path}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_parts(url: &str, authority: &str, port: u16, target: &str) {
        let endpoint = Endpoint::parse(url).expect("a good URL");
        assert_eq!((&*endpoint.authority(), endpoint.port(), endpoint.target()), (authority, port, target));
    }

    #[test]
    fn values_are_told_as_they_stand_and_as_they_are_meant() {
        let endpoint = Endpoint::parse("https://a/b?code=abc%3D%3d&x&tenant=a+b%2").expect("a good URL");

        let values: Vec<String> = endpoint.values().map(|value| value.expose().to_owned()).collect();

        assert_eq!(values, ["abc%3D%3d", "abc==", "a+b%2", "a b%2"]);
    }

    #[test]
    fn a_url_is_taken_apart() {
        assert_parts("https://login.example/oauth2/token", "login.example", 443, "/oauth2/token");
        assert_parts("HTTP://a", "a", 80, "/");
        assert_parts("http://a:8080/x?y=z#w", "a:8080", 8080, "/x?y=z");
        assert_parts("https://a?y=z", "a", 443, "/?y=z");
        assert_parts("https://[::1]:8443/x", "[::1]:8443", 8443, "/x");
        assert_parts("https://[::1]/x", "[::1]", 443, "/x");
        assert_eq!(Endpoint::parse("https://[::1]/x").expect("a good URL").host(), "::1");
    }

    #[test]
    fn what_is_wrong_is_told_without_the_url() {
        for (url, word) in [
            ("login.example/token", "no scheme"),
            ("ftp://a", "https"),
            ("https://", "no host"),
            ("https://alice:hunter2@a/", "user"),
            ("https://a:0/", "port"),
            ("https://a:x/", "port"),
            ("https://::1/", "brackets"),
            ("https://[::1/", "without a ']'"),
            ("https://a/hunter2 x", "blank"),
        ] {
            let fault = Endpoint::parse(url).expect_err("a bad URL");
            assert!(fault.contains(word) && !fault.contains("hunter2"), "{url}: {fault}");
        }
    }

    #[test]
    fn a_query_is_not_shown() {
        let endpoint = Endpoint::parse("https://a/x?key=hunter2").expect("a good URL");

        assert_eq!(endpoint.to_string(), "https://a/x");
    }
}
