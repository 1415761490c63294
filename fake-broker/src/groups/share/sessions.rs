//! Share sessions: what a partition leader remembers of a member's partitions, so that requests name only what changed.
//!
//! ```text
//!   epoch 0 ──▶ a new session, in place of the member's last one ──▶ epochs 1, 2, … ──▶ -1: closed
//! ```
//!
//! A session dies with the connection that it was begun on, and the member's records are given back. Unlike fetch
//! sessions, these are never thrown out for others: when all are taken, a new one is refused.
//!
//! A connection stands for the session that was begun on it last, and for that session's group also when the session
//! has ended before: when it is gone and the group has no session left on the node, the node forgets the group.

use std::collections::BTreeMap;

use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::context::ConnectionId;

/// The epoch of a request that begins a session.
pub(crate) const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that ends one.
pub(crate) const FINAL_EPOCH: i32 = -1;

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) group: Str,
    pub(crate) member: Str,
}

/// A partition that a member reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) topic: Uuid,
    pub(crate) partition: i32,
    /// Whether the topic was there when the member asked for it.
    pub(crate) is_known: bool,
}

/// The share sessions of one node.
#[derive(Clone, Debug)]
pub(crate) struct ShareSessions {
    slots: usize,
    sessions: BTreeMap<Holder, Session>,
    /// The session that was begun last on each open connection.
    begun: BTreeMap<ConnectionId, Begun>,
}

#[derive(Clone, Debug)]
struct Begun {
    holder: Holder,
    /// Whether the session has ended by now, or goes on from another connection.
    is_over: bool,
}

/// What the end of a connection means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Whose session was begun on it.
    pub(crate) holder: Holder,
    /// Whether that session was still there.
    pub(crate) ends_session: bool,
}

#[derive(Clone, Debug)]
struct Session {
    /// The epoch that the next request must have.
    epoch: i32,
    connection: ConnectionId,
    partitions: Vec<Cached>,
}

#[derive(Clone, Debug)]
struct Cached {
    wanted: Wanted,
    /// Whether the member is told of it though there is no news: it is new, or had an error last.
    is_due: bool,
}

impl ShareSessions {
    /// Room for so many sessions.
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots, sessions: BTreeMap::new(), begun: BTreeMap::new() }
    }

    /// Begins a session, in place of the member's last one.
    pub(crate) fn open(
        &mut self,
        holder: Holder,
        connection: ConnectionId,
        wanted: Vec<Wanted>,
    ) -> Result<(), ErrorCode> {
        self.close(&holder);
        if self.sessions.len() >= self.slots {
            return Err(ErrorCode::SHARE_SESSION_LIMIT_REACHED);
        }
        let mut session = Session { epoch: 1, connection, partitions: Vec::new() };
        session.add(wanted);
        self.begun.insert(connection, Begun { holder: holder.clone(), is_over: false });
        self.sessions.insert(holder, session);
        Ok(())
    }

    /// Takes a session's next step, if the request has its epoch. One with the final epoch always fits.
    pub(crate) fn step(&mut self, holder: &Holder, epoch: i32) -> Result<(), ErrorCode> {
        let session = self.sessions.get_mut(holder).ok_or(ErrorCode::SHARE_SESSION_NOT_FOUND)?;
        if epoch == FINAL_EPOCH {
            return Ok(());
        }
        if session.epoch != epoch {
            return Err(ErrorCode::INVALID_SHARE_SESSION_EPOCH);
        }
        // After the largest epoch comes 1: 0 would begin a session.
        session.epoch = epoch.checked_add(1).unwrap_or(1);
        Ok(())
    }

    /// Adds partitions to a session and takes others out.
    pub(crate) fn update(&mut self, holder: &Holder, added: Vec<Wanted>, forgotten: &[(Uuid, i32)]) {
        if let Some(session) = self.sessions.get_mut(holder) {
            session.add(added);
            session.partitions.retain(|cached| !forgotten.contains(&(cached.wanted.topic, cached.wanted.partition)));
        }
    }

    /// The partitions of a session. Another one leads at each epoch, so that none starves.
    pub(crate) fn partitions(&self, holder: &Holder) -> Vec<Wanted> {
        let Some(session) = self.sessions.get(holder) else { return Vec::new() };
        let mut wanted: Vec<_> = session.partitions.iter().map(|cached| cached.wanted.clone()).collect();
        if !wanted.is_empty() {
            let turn = usize::try_from(session.epoch - 1).unwrap_or(0) % wanted.len();
            wanted.rotate_left(turn);
        }
        wanted
    }

    /// Whether the member is told of a partition: there is news of it, or it is due anyway.
    pub(crate) fn tells(&mut self, holder: &Holder, topic: Uuid, partition: i32, has_news: bool, failed: bool) -> bool {
        let session = self.sessions.get_mut(holder);
        let mut cached = session.into_iter().flat_map(|session| &mut session.partitions);
        let Some(cached) = cached.find(|c| c.wanted.topic == topic && c.wanted.partition == partition) else {
            return true;
        };
        std::mem::replace(&mut cached.is_due, failed) || has_news || failed
    }

    /// Ends a session. Returns the partitions that the member read.
    pub(crate) fn close(&mut self, holder: &Holder) -> Option<Vec<Wanted>> {
        let session = self.sessions.remove(holder)?;
        if let Some(begun) = self.begun.get_mut(&session.connection) {
            begun.is_over = true;
        }
        Some(session.partitions.into_iter().map(|cached| cached.wanted).collect())
    }

    /// A connection is gone. Says whose session was begun on it last, if one was.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId) -> Option<Ended> {
        let Begun { holder, is_over } = self.begun.remove(&connection)?;
        Some(Ended { ends_session: !is_over, holder })
    }

    /// Whether a group has a session here.
    pub(crate) fn knows(&self, group: &str) -> bool {
        self.sessions.keys().any(|holder| &*holder.group == group)
    }

    /// Forgets all sessions. The connections stay, as they do when share groups are switched off.
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
    }
}

impl Session {
    fn add(&mut self, wanted: Vec<Wanted>) {
        for wanted in wanted {
            let is_there =
                |cached: &Cached| (cached.wanted.topic, cached.wanted.partition) == (wanted.topic, wanted.partition);
            if !self.partitions.iter().any(is_there) {
                self.partitions.push(Cached { wanted, is_due: true });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(member: &'static str) -> Holder {
        Holder { group: Str::from_static("group"), member: Str::from_static(member) }
    }

    #[test]
    fn a_session_goes_from_epoch_to_epoch_and_skips_zero() {
        let mut sessions = ShareSessions::new(1);
        sessions.open(holder("a"), ConnectionId(1), Vec::new()).expect("there is room");

        assert_eq!(sessions.step(&holder("a"), 2), Err(ErrorCode::INVALID_SHARE_SESSION_EPOCH));
        assert_eq!(sessions.step(&holder("a"), 1), Ok(()));
        assert_eq!(sessions.step(&holder("a"), FINAL_EPOCH), Ok(()));
        assert_eq!(sessions.step(&holder("a"), 2), Ok(()));
        sessions.sessions.get_mut(&holder("a")).expect("it is there").epoch = i32::MAX;
        assert_eq!(sessions.step(&holder("a"), i32::MAX), Ok(()));
        assert_eq!(sessions.step(&holder("a"), 1), Ok(()));
    }

    #[test]
    fn a_session_is_refused_when_all_are_taken_but_not_to_who_has_one() {
        let mut sessions = ShareSessions::new(1);
        let mut open = |member| sessions.open(holder(member), ConnectionId(1), Vec::new());

        assert_eq!(open("a"), Ok(()));
        assert_eq!(open("b"), Err(ErrorCode::SHARE_SESSION_LIMIT_REACHED));
        assert_eq!(open("a"), Ok(()));
    }
}
