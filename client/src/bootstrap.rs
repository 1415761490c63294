//! Reads the list of bootstrap servers that the user gave.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use crate::cluster::Node;
use crate::error::KrafkaError;

/// How a right list looks, for the errors about wrong ones.
const REMEDY: &str = "give 'host:port', several with commas between, such as 'kafka-1:9092,kafka-2:9092'";

/// Parses `host:port,host:port`. An IPv6 address stands in brackets: `[::1]:9092`.
///
/// # Errors
/// [`KrafkaError::Config`], which names the item that is wrong and what would be right.
pub(crate) fn parse(servers: &str) -> Result<Vec<Node>, KrafkaError> {
    if servers.contains(['@', '?']) {
        // It was meant as a URL, and may have a password in it, also between its commas.
        return Err(KrafkaError::config(format!(
            "the bootstrap servers '{}' have a user or settings, as only a URL has: give Kafka::builder \
             'kafka://user:password@host:port', or 'kafka+tls://…' for TLS, with percent signs where a URL needs them; \
             otherwise {REMEDY}",
            shown(servers)
        )));
    }
    let items: Vec<&str> = servers.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
    if items.is_empty() {
        return Err(KrafkaError::config(format!("there is no bootstrap server: {REMEDY}")));
    }
    let mut nodes = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let (host, port) = split(item)
            .map_err(|why| KrafkaError::config(format!("bootstrap server '{}' {why}: {REMEDY}", shown(item))))?;
        nodes.push(Node::bootstrap(index, host, port));
    }
    Ok(nodes)
}

/// In place of what may be secret.
const HIDDEN: &str = "[hidden]";

/// The text without what may be secret in it: whatever stands before an '@' and behind a '?', and what is no port in
/// the place of one, as in a URL that was cut off before its '@'.
pub(crate) fn shown(servers: &str) -> Cow<'_, str> {
    let is_scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte));
    let scheme = servers.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
    let scheme = scheme.map(|scheme| format!("{scheme}://")).unwrap_or_default();
    match (servers.rsplit_once('@'), servers.split_once('?')) {
        (None, None) => without_passwords(servers),
        (Some((_, behind)), None) => format!("{scheme}{HIDDEN}@{behind}").into(),
        (None, Some((before, _))) => format!("{before}?{HIDDEN}").into(),
        // Either of them may be part of a password.
        (Some(_), Some(_)) => format!("{scheme}{HIDDEN}").into(),
    }
}

/// The list up to what stands in the place of a port and is no number. A password may have commas in it, too.
fn without_passwords(servers: &str) -> Cow<'_, str> {
    let mut behind = 0;
    for item in servers.split(',') {
        let item = item.trim_end();
        behind += item.len();
        let address = item.split_once("://").map_or(item, |(_, rest)| rest).trim_start();
        let port = match address.rsplit_once("]:") {
            _ if address.parse::<Ipv6Addr>().is_ok() => "",
            Some((_, port)) => port,
            None if address.starts_with('[') => "",
            None => address.split_once(':').map_or("", |(_, port)| port),
        };
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return format!("{}{HIDDEN}", &servers[..behind - port.len()]).into();
        }
        behind += 1;
    }
    Cow::Borrowed(servers)
}

fn split(item: &str) -> Result<(&str, u16), String> {
    if let Some((scheme, rest)) = item.split_once("://") {
        let rest = shown(rest);
        return Err(format!("begins with '{scheme}://', which belongs to a broker's listeners; leave '{rest}'"));
    }
    let (host, port) = match item.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("has a '[' without its ']'")?;
            (host, port.strip_prefix(':').ok_or("has no port after the address")?)
        }
        None => {
            let (host, port) = item.rsplit_once(':').ok_or("has no port")?;
            if item.parse::<Ipv6Addr>().is_ok() {
                return Err(format!("is an IPv6 address without brackets, or without a port; write '[{item}]:9092'"));
            }
            if host.contains(':') {
                return Err("has more than one ':'; servers are kept apart by commas".to_owned());
            }
            (host, port)
        }
    };
    if host.is_empty() {
        return Err("has no host".to_owned());
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@' | ';')) {
        return Err("has a character in its host that no host name has".to_owned());
    }
    match port.parse() {
        Ok(0) | Err(_) => Err("has a port that is no number from 1 to 65535".to_owned()),
        Ok(port) => Ok((host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(servers: &str) -> Vec<(String, u16)> {
        parse(servers).expect("a good list").into_iter().map(|node| (node.host.to_string(), node.port)).collect()
    }

    #[track_caller]
    fn assert_refused(servers: &str, words: &[&str]) {
        let text = parse(servers).expect_err("a bad list").to_string();
        for word in words {
            assert!(text.contains(word), "'{text}' lacks '{word}'");
        }
    }

    #[test]
    fn hosts_and_ports_are_read() {
        assert_eq!(addresses("a:1"), [("a".to_owned(), 1)]);
        assert_eq!(addresses(" a:1 , b.c:65535,"), [("a".to_owned(), 1), ("b.c".to_owned(), 65535)]);
        assert_eq!(addresses("127.0.0.1:9092"), [("127.0.0.1".to_owned(), 9092)]);
        assert_eq!(addresses("[::1]:9092"), [("::1".to_owned(), 9092)]);
    }

    #[test]
    fn bootstrap_ids_count_down_from_minus_one() {
        let ids: Vec<_> = parse("a:1,b:2").expect("a good list").iter().map(|node| node.id).collect();

        assert_eq!(ids, [-1, -2]);
    }

    #[test]
    fn what_may_be_a_password_is_not_shown() {
        for (text, expected) in [
            ("a:1,b:2", "a:1,b:2"),
            ("SASL_SSL://alice:hunter2@a:1", "SASL_SSL://[hidden]@a:1"),
            ("alice:hunter2@a:1", "[hidden]@a:1"),
            ("b:1,alice:hun@t,er2@a:1", "[hidden]@a:1"),
            ("alice:hunter2://@a:1", "[hidden]@a:1"),
            ("kafak://a:1/?ssl.key.password=hunter2,x:1", "kafak://a:1/?[hidden]"),
            ("kafak://alice:hunt?er2@a:1", "kafak://[hidden]"),
        ] {
            assert_eq!(shown(text), expected);
            if text != expected {
                assert_refused(text, &[expected, "kafka+tls://"]);
                assert!(!parse(text).expect_err("a URL").to_string().contains("hunt"));
            }
        }
    }

    /// A URL that a shell, or YAML, has cut off before its '@' has a user for its host and a password for its port.
    #[test]
    fn what_stands_for_a_port_is_not_shown() {
        for (text, expected) in [
            ("alice:hunter2", "alice:[hidden]"),
            ("a:1, alice:hun,ter2", "a:1, alice:[hidden]"),
            ("alice:hun:ter2", "alice:[hidden]"),
            ("alice:1hunter:2", "alice:[hidden]"),
            ("kafak://alice:hunter2", "kafak://alice:[hidden]"),
            ("[::1]:hunter2 ", "[::1]:[hidden]"),
        ] {
            assert_eq!(shown(text), expected);
            let error = parse(text).expect_err("no list").to_string();
            assert!(!error.contains("hunt") && !error.contains("ter2"), "{error}");
        }
        for text in ["a:1 , b:2", "[::1]:9092", "fe80::a", "PLAINTEXT://a:1", "a", "[::1]"] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn a_wrong_item_is_named_with_its_remedy() {
        assert_refused("", &["there is no bootstrap server", "host:port"]);
        assert_refused(" , ", &["there is no bootstrap server"]);
        assert_refused("a:1,kafka", &["'kafka' has no port", "host:port"]);
        assert_refused("kafka:", &["'kafka:' has a port", "1 to 65535"]);
        assert_refused("kafka:http", &["'kafka:[hidden]' has a port", "1 to 65535"]);
        assert_refused("kafka:0", &["'kafka:0' has a port"]);
        assert_refused("kafka:65536", &["'kafka:65536' has a port"]);
        assert_refused(":9092", &["has no host"]);
        assert_refused("::1", &["IPv6", "write '[::1]:9092'"]);
        assert_refused("fe80::1:2", &["IPv6", "write '[fe80::1:2]:9092'"]);
        assert_refused("a:1;b:2", &["more than one ':'", "by commas"]);
        assert_refused("a;b:2", &["no host name has"]);
        assert_refused("\0:2", &["no host name has"]);
        assert_refused("[::1:9092", &["without its ']'"]);
        assert_refused("[::1]", &["no port"]);
        assert_refused("PLAINTEXT://kafka:9092", &["'PLAINTEXT://'", "leave 'kafka:9092'"]);
        assert_refused("my kafka:9092", &["no host name has"]);
    }
}
