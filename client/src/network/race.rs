//! Several addresses of one name: each is tried a little after the one before, and the first to answer wins.
//!
//! RFC 8305, "Happy Eyeballs": an address that swallows packets costs a quarter of a second, not the connect timeout.
//! IPv6 and IPv4 take turns, so that a network that lacks one of them costs one step.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

/// RFC 8305's recommended "connection attempt delay".
const HEAD_START: Duration = Duration::from_millis(250);

/// More addresses than a DNS answer holds of a name. Those that swallow packets are bounded by the connect timeout, so
/// that this only bounds how many may refuse.
const MAX_ADDRESSES: usize = 4_096;

/// How many failures an error has words for.
const MAX_TOLD: usize = 32;

/// Connects to the first of the addresses that answers, of which the first `dead` come last: whoever answers there is
/// no broker, or has none behind it, which no race can see.
///
/// # Errors
/// When all have failed: each address with its failure, of which the last is the source; of a single one its failure.
pub(super) async fn race<S, F>(
    addresses: Vec<SocketAddr>,
    dead: usize,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<S>
where
    S: Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    // Dropping the set, by winning or by the caller's timeout, ends the attempts that are under way.
    let mut attempts = JoinSet::new();
    let mut failures = Vec::new();
    let mut addresses = interleave(addresses);
    let before = dead.checked_rem(addresses.len()).unwrap_or(0);
    addresses.rotate_left(before);
    addresses.truncate(MAX_ADDRESSES);
    let mut rest = addresses.into_iter();
    loop {
        let next = rest.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            let attempt = connect(address);
            attempts.spawn(async move { attempt.await.map_err(|why| (address, why)) });
        }
        // The next address starts when this one has had its head start, or at once when an attempt fails.
        let finished = match is_last {
            true => attempts.join_next().await,
            false => match timeout(HEAD_START, attempts.join_next()).await {
                Ok(finished) => finished,
                Err(_) => continue,
            },
        };
        match finished {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(failure))) => failures.push(failure),
            // Connecting is the system's, and does not panic.
            Some(Err(panicked)) => return Err(io::Error::other(panicked)),
            None if is_last => return Err(all_failed(failures)),
            None => {}
        }
    }
}

/// The failures of all addresses, as one.
#[cold]
fn all_failed(mut failures: Vec<(SocketAddr, io::Error)>) -> io::Error {
    let mut told: Vec<String> =
        failures.iter().take(MAX_TOLD).map(|(address, why)| format!("{address}: {why}")).collect();
    if failures.len() > MAX_TOLD {
        told.push(format!("and {} others", failures.len() - MAX_TOLD));
    }
    match (failures.pop(), told.len()) {
        (None, _) => io::Error::other("it has no address"),
        (Some((_, only)), 1) => only,
        (Some((_, last)), _) => io::Error::new(last.kind(), AllFailed { told: told.join(", "), last }),
    }
}

/// The failure of the one address that a name led to.
#[cold]
pub(super) fn failed_at(address: SocketAddr, why: io::Error) -> io::Error {
    io::Error::new(why.kind(), AllFailed { told: format!("{address}: {why}"), last: why })
}

/// What became of each address, and the last failure.
#[derive(Debug)]
struct AllFailed {
    told: String,
    last: io::Error,
}

impl fmt::Display for AllFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

impl Error for AllFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.last)
    }
}

/// The addresses in the resolver's order, but with the two families taking turns.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_first_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|address| address.is_ipv6() == is_first_v6);
    let mut second = second.into_iter();
    let mut turns: Vec<_> = first.into_iter().flat_map(|address| [Some(address), second.next()]).flatten().collect();
    turns.extend(second);
    turns
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests ask for the virtual time to see how long something took")]

    use tokio::time::Instant;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// Port 1 swallows, port 2 refuses, port 3 answers after 100 ms with its address.
    async fn connect(address: SocketAddr) -> io::Result<SocketAddr> {
        match address.port() {
            1 => std::future::pending().await,
            2 => Err(io::ErrorKind::ConnectionRefused.into()),
            _ => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(address)
            }
        }
    }

    async fn timed(addresses: &[&str]) -> (Result<SocketAddr, io::ErrorKind>, u128) {
        let start = Instant::now();
        let addresses = addresses.iter().map(|text| address(text)).collect();
        let won = race(addresses, 0, connect).await.map_err(|why| why.kind());
        (won, start.elapsed().as_millis())
    }

    /// CB-02.
    #[tokio::test(start_paused = true)]
    async fn an_address_that_swallows_costs_its_head_start() {
        assert_eq!(timed(&["10.0.0.1:1", "10.0.0.2:3"]).await, (Ok(address("10.0.0.2:3")), 350));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_refuses_costs_nothing() {
        assert_eq!(timed(&["10.0.0.1:2", "10.0.0.2:2", "10.0.0.3:3"]).await, (Ok(address("10.0.0.3:3")), 100));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_refuse_the_last_reason_is_told() {
        assert_eq!(timed(&["10.0.0.1:2", "10.0.0.2:2"]).await, (Err(io::ErrorKind::ConnectionRefused), 0));
        assert_eq!(timed(&[]).await, (Err(io::ErrorKind::Other), 0));
    }

    /// What a name led to is what its reader needs.
    #[tokio::test(start_paused = true)]
    async fn when_all_refuse_each_is_named() {
        let both = ["10.0.0.1:2", "[::2]:2"].map(address).to_vec();

        let error = race(both, 0, connect).await.expect_err("both refuse");
        let text = error.to_string();
        assert!(text.contains("10.0.0.1:2: ") && text.contains("[::2]:2: "), "{text}");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let inner = error.get_ref().and_then(Error::source).expect("the last failure");
        assert!(inner.downcast_ref::<io::Error>().is_some());

        let one = race(vec![address("10.0.0.1:2")], 0, connect).await.expect_err("it refuses");
        assert!(!one.to_string().contains("10.0.0.1"), "who gave an address knows it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_address_may_still_win() {
        assert_eq!(timed(&["10.0.0.1:3", "10.0.0.2:1"]).await, (Ok(address("10.0.0.1:3")), 100));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_answered_in_vain_comes_last() {
        let addresses = ["10.0.0.1:3", "10.0.0.2:3", "10.0.0.3:2"].map(address);

        for (dead, first) in [(0, 0), (1, 1), (2, 0), (3, 0), (4, 1)] {
            let won = race(addresses.to_vec(), dead, connect).await.expect("two of them answer");
            assert_eq!(won, addresses[first], "after {dead}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_of_many_addresses_is_tried() {
        let mut addresses: Vec<_> = (1..=99).map(|n| address(&format!("10.0.0.{n}:2"))).collect();
        addresses.push(address("10.0.0.100:3"));

        let error = race(addresses[..99].to_vec(), 0, connect).await.expect_err("they refuse").to_string();
        assert!(error.contains("10.0.0.32:2: ") && error.ends_with(", and 67 others"), "{error}");
        assert_eq!(race(addresses, 0, connect).await.expect("the last one answers"), address("10.0.0.100:3"));
    }

    #[test]
    fn the_families_take_turns() {
        let addresses = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"].map(address).to_vec();

        let turns = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"].map(address);

        assert_eq!(interleave(addresses), turns);
    }
}
