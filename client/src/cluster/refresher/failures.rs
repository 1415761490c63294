//! What a round of questions has met with, server by server, and how that is told as one error.

use std::io;

use crate::cluster::Node;
use crate::error::KrafkaError;

/// Who failed, and how.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(Vec<(Node, KrafkaError)>);

impl Failures {
    pub(super) fn of(node: &Node, error: KrafkaError) -> Self {
        Self(vec![(node.clone(), error)])
    }

    pub(super) fn note(&mut self, node: &Node, error: KrafkaError) {
        self.0.push((node.clone(), error));
    }

    /// One error for a round in which every server failed.
    #[cold]
    pub(super) fn as_one(&self) -> KrafkaError {
        combine(self.0.iter().map(|(_, error)| error).collect(), Vec::new())
    }

    /// One error for a round that has not heard of some servers yet: of these is told what they met with before.
    #[cold]
    pub(super) fn so_far(&self, unheard: &[Node], before: &Self) -> KrafkaError {
        let former = |node: &Node| before.0.iter().find(|(failed, _)| failed == node).map(|(_, error)| error);
        let failures = self.0.iter().map(|(_, error)| error).chain(unheard.iter().filter_map(former)).collect();
        let silent = unheard.iter().map(|node| match former(node) {
            Some(_) => format!("{node}, asked once more, has not answered yet"),
            None => format!("{node} has not answered yet"),
        });
        combine(failures, silent.collect())
    }
}

/// A broker that has just started may not know of itself yet: what it says is not how the cluster is.
#[cold]
pub(super) fn unaware(node: &Node) -> KrafkaError {
    let why = io::Error::new(io::ErrorKind::NotConnected, "it knows of no broker at all; is it just starting?");
    KrafkaError::network(format!("fetching metadata from {node}"), why)
}

/// What ends the client is told before all else; that no retry can help, only if it is so for every server: one may be
/// no broker, and the others be just starting.
fn combine(failures: Vec<&KrafkaError>, silent: Vec<String>) -> KrafkaError {
    let worst = failures.iter().find(|failure| failure.is_fatal());
    let worst = worst.or_else(|| failures.iter().rfind(|failure| failure.is_retriable()));
    let worst = worst.or_else(|| failures.last().filter(|_| silent.is_empty()));
    let told: Vec<String> = failures.iter().map(ToString::to_string).chain(silent).collect();
    let all = format!("no broker can be asked for metadata: {}", told.join("; "));
    match worst {
        Some(only) if told.len() == 1 => KrafkaError::clone(only),
        Some(worst) => worst.saying(all),
        None if told.is_empty() => KrafkaError::config("there is no bootstrap server to ask"),
        None => KrafkaError::timeout(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(node: &Node) -> KrafkaError {
        KrafkaError::network(format!("connecting to {node}"), io::ErrorKind::ConnectionRefused.into())
    }

    /// Of a server that failed before and is silent now, both are told; of others only what this round has met with.
    #[test]
    fn what_is_told_of_servers_does_not_contradict_itself() {
        let [one, two, three] = [0, 1, 2].map(|index| Node::bootstrap(index, "kafka", 9_000 + index as u16));
        let mut before = Failures::of(&one, refused(&one));
        before.note(&two, refused(&two));
        let now = Failures::of(&one, refused(&one));

        let text = now.so_far(&[two, three], &before).to_string();

        let told: Vec<&str> =
            text.strip_prefix("no broker can be asked for metadata: ").expect(&text).split("; ").collect();
        let ends = [
            ":9000: connection refused",
            ":9001: connection refused",
            "9001, asked once more, has not answered yet",
            ":9002 has not answered yet",
        ];
        assert!(told.len() == ends.len() && told.iter().zip(ends).all(|(told, end)| told.ends_with(end)), "{told:?}");
    }
}
