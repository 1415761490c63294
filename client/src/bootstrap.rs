//! Reads the list of bootstrap servers that the user gave.

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
        return Err(KrafkaError::config(format!(
            "the bootstrap servers '{}' are not only servers: a user, a password and settings stand in a URL, \
             kafka://user:password@host:port/?name=value with kafka+tls:// for TLS, which is given to \
             Kafka::builder or as KRAFKA_URL",
            shown(servers)
        )));
    }
    let items: Vec<&str> = servers.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
    if items.is_empty() {
        return Err(KrafkaError::config(format!("there is no bootstrap server: {REMEDY}")));
    }
    let mut nodes = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let (host, port) =
            split(item).map_err(|why| KrafkaError::config(format!("bootstrap server '{item}' {why}: {REMEDY}")))?;
        nodes.push(Node::bootstrap(index, host, port));
    }
    Ok(nodes)
}

/// The servers as they may be shown: without what may be a user and a password, or settings.
pub(crate) fn shown(servers: &str) -> String {
    let (scheme, rest) = match servers.split_once("://") {
        // A password may have the sign of a scheme in it, too.
        Some((scheme, rest)) if !scheme.contains(['@', ':', '?']) => (format!("{scheme}://"), rest),
        _ => (String::new(), servers),
    };
    match (rest.rfind('@'), rest.find('?')) {
        (None, None) => servers.to_owned(),
        (None, Some(query)) => format!("{scheme}{}?[hidden]", &rest[..query]),
        (Some(at), None) => format!("{scheme}[hidden]@{}", &rest[at + 1..]),
        (Some(at), Some(query)) if at < query => format!("{scheme}[hidden]@{}?[hidden]", &rest[at + 1..query]),
        // The question mark, or the at sign, may be one of the password's.
        (Some(_), Some(_)) => format!("{scheme}[hidden]"),
    }
}

fn split(item: &str) -> Result<(&str, u16), String> {
    if let Some((scheme, rest)) = item.split_once("://") {
        if scheme.to_ascii_lowercase().starts_with("kafka") {
            return Err(format!("begins with '{scheme}://', where only kafka:// and kafka+tls:// begin a URL"));
        }
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
        Ok(0) | Err(_) => Err(format!("has the port '{port}', which is no number from 1 to 65535")),
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
    fn a_wrong_item_is_named_with_its_remedy() {
        assert_refused("", &["there is no bootstrap server", "host:port"]);
        assert_refused(" , ", &["there is no bootstrap server"]);
        assert_refused("a:1,kafka", &["'kafka' has no port", "host:port"]);
        assert_refused("kafka:", &["the port ''", "1 to 65535"]);
        assert_refused("kafka:http", &["the port 'http'"]);
        assert_refused("kafka:0", &["the port '0'"]);
        assert_refused("kafka:65536", &["the port '65536'"]);
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
        assert_refused("kafka+tsl://a:1", &["'kafka+tsl://'", "kafka+tls://"]);
    }

    /// A scheme that is misspelt, or left out, tells nobody the password.
    #[test]
    fn what_may_be_a_password_is_not_shown() {
        for (servers, visible) in [
            ("kafka+tsl://alice:hunter2@h:9092", "kafka+tsl://[hidden]@h:9092"),
            ("SASL_SSL://alice:hunter2@a:9092", "SASL_SSL://[hidden]@a:9092"),
            ("alice:hunter2@h:9092,g:9092", "[hidden]@h:9092,g:9092"),
            ("alice:hunt,hunter2@h:9092", "[hidden]@h:9092"),
            ("alice:a://hunter2@h:9092", "[hidden]@h:9092"),
            ("alice:hunt?hunter2@h:9092", "[hidden]"),
            ("h:9092?ssl.key.password=hunter2", "h:9092?[hidden]"),
            ("x://alice:hunter2@h:1/?ssl.key.password=hunter2", "x://[hidden]@h:1/?[hidden]"),
        ] {
            assert_refused(servers, &[&format!("'{visible}'"), "kafka://user:password@host:port"]);
            assert!(!parse(servers).expect_err("refused").to_string().contains("hunt"), "{servers}");
        }
        assert_eq!(shown("SSL://a:1,b:2"), "SSL://a:1,b:2");
    }
}
