//! What a rule does: the words that end it, one for each action.
//!
//! They stand in the order of the layers: the request, its answer, the bytes of the answer, the connection, the
//! cluster.

use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::{AnyResponse, ErrorCode};

use super::action::Action;
use super::builder::{Rule, RuleBuilder};
use super::damage::Damage;
use super::hints::Hint;
use super::names::Code;
use crate::operations::Operation;

impl RuleBuilder {
    /// Answers an error: to the topic or partition that the rule names and to nothing else, or else to all that is
    /// asked for. What is refused has no effect, unless it comes [after handling](Self::after_handling), which only
    /// some APIs can do and with only some codes. NOT_ENOUGH_REPLICAS_AFTER_APPEND comes after the deed by itself.
    ///
    /// # Panics
    ///
    /// If no broker could answer so after the deed; the text says which errors the API can give then.
    #[track_caller]
    pub fn reply_error(self, code: ErrorCode) -> Rule {
        self.install(Action::ReplyError(Code(code)))
    }

    /// Tells the client to be silent for this time. The answer is sent at once, and the connection is not read from
    /// until the time is over, as Kafka does since version 2.0 (KIP-219).
    #[track_caller]
    pub fn throttle(self, time: Duration) -> Rule {
        self.install(Action::Throttle(time))
    }

    /// Handles the request later, or answers it later if [after handling](Self::after_handling). What is behind it on
    /// its connection waits too.
    #[track_caller]
    pub fn delay(self, time: Duration) -> Rule {
        self.install(Action::Delay(time))
    }

    /// Closes the connection instead of handling the request, or of answering it.
    #[track_caller]
    pub fn drop_connection(self) -> Rule {
        self.install(Action::DropConnection)
    }

    /// Never answers the request, nor anything behind it on its connection.
    #[track_caller]
    pub fn silence(self) -> Rule {
        self.install(Action::Silence)
    }

    /// Answers Metadata (from version 13 on) with REBOOTSTRAP_REQUIRED, 129: the client must forget the cluster that it
    /// knows and begin again from its bootstrap servers (KIP-1102).
    #[track_caller]
    pub fn rebootstrap(self) -> Rule {
        self.install(Action::Rebootstrap)
    }

    /// Makes the client's epoch one of the past. For Fetch, ListOffsets and OffsetForLeaderEpoch the leader is elected
    /// again just before, so a client that tells the epoch it knows gets FENCED_LEADER_EPOCH. Produce is answered
    /// INVALID_PRODUCER_EPOCH, InitProducerId PRODUCER_FENCED, and a group's SyncGroup, Heartbeat and OffsetCommit
    /// ILLEGAL_GENERATION. Records of a producer that is not idempotent carry no epoch: the rule does not act on them.
    #[track_caller]
    pub fn fence_epoch(self) -> Rule {
        self.install(Action::FenceEpoch)
    }

    /// Moves the leaders of the partitions that the request is about to this node, just before it is handled.
    #[track_caller]
    pub fn move_leader(self, to: i32) -> Rule {
        self.install(Action::MoveLeader(to))
    }

    /// Moves the leaders of the partitions that the request is about to other replicas, just before it is handled.
    #[track_caller]
    pub fn move_leader_away(self) -> Rule {
        self.install(Action::MoveLeaderAway)
    }

    /// Changes the answer before it is written.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn edit(self, edit: impl Fn(&mut AnyResponse) + Send + Sync + 'static) -> Rule {
        self.install(Action::Edit(Arc::new(edit)))
    }

    /// Does nothing but count: until it is removed, unless it is told [how often](Self::times).
    #[track_caller]
    pub fn observe(self) -> Rule {
        self.install(Action::Observe)
    }

    /// Resets the connection (RST) instead of handling the request, or of answering it. On TCP the client sees a reset;
    /// in memory, too.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn reset_connection(self) -> Rule {
        self.install(Action::ResetConnection)
    }

    /// Leaves what the rule names (a topic, a partition, a group) out of the answer; if it names nothing, the answer's
    /// first entity.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn drop_entity(self) -> Rule {
        self.install(Action::DropEntity)
    }

    /// Answers twice what the rule names; if it names nothing, the answer's first entity.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn duplicate_entity(self) -> Rule {
        self.install(Action::DuplicateEntity)
    }

    /// Sets a field of the answer, in the parts that the rule names. The field is called by the names that our structs
    /// give it and those around it, with dots between: `topics.partitions.leader_id`.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If the rule names no API, or one whose answers have no such field, or the value does not fit.
    #[track_caller]
    pub fn set(self, field: impl Into<String>, value: impl Into<serde_json::Value>) -> Rule {
        self.install(Action::Set { field: field.into(), value: value.into() })
    }

    /// Gives a wrong hint, or none, in the parts of the answer that the rule names. Answers without room for it are
    /// left alone, and do not count.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn hint(self, hint: Hint) -> Rule {
        self.install(Action::Hint(hint))
    }

    /// Writes the answer as another version of the API has it, under the version that was asked for.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn layout(self, version: i16) -> Rule {
        self.install(Action::Layout(version))
    }

    /// Harms the bytes of the answer.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn damage(self, damage: Damage) -> Rule {
        self.install(Action::Damage(damage))
    }

    /// Writes the answer in pieces of so many bytes, with a pause between them.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn chunk(self, bytes: usize, pause: Duration) -> Rule {
        self.damage(Damage::Chunk { bytes, pause })
    }

    /// Does something to the cluster just before the request is handled, or just before it is answered if
    /// [after handling](Self::after_handling).
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn change_cluster(self, operation: Operation) -> Rule {
        self.install(Action::ChangeCluster(operation))
    }

    /// Handles the request as ever, and delivers it to the node a second time once this has passed, on a connection of
    /// its own with the same login, as a network does that kept a packet back for long. Nobody reads the second answer,
    /// and no rule touches it.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn redeliver(self, after: Duration) -> Rule {
        self.install(Action::Redeliver(after))
    }

    /// Forgets the connection in place of handling the request, or of answering it, and tells the client nothing: the
    /// connection looks open to it until it sends again, and is reset then. So does a host that was rebooted, or a
    /// router in between that forgot.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn half_open(self) -> Rule {
        self.install(Action::HalfOpen)
    }

    /// Lets frames arrive so much later, and as much as `jitter` more or less than that, without ever overtaking each
    /// other. Only for rules that begin with [`when_network`](crate::FakeCluster::when_network), as all that follow.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn latency(self, time: Duration, jitter: Duration) -> Rule {
        self.install(Action::Latency { time, jitter })
    }

    /// Lets so many bytes through in a second on each connection.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[track_caller]
    pub fn bandwidth(self, bytes_per_second: u64) -> Rule {
        self.install(Action::Bandwidth { bytes_per_second })
    }

    /// Loses packets with this probability. TCP sends them again, for the first time after 200 ms, so that frames come
    /// late and never not at all.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If the probability is not at least 0 and less than 1.
    #[track_caller]
    pub fn lose(self, probability: f64) -> Rule {
        self.install(Action::Loss { probability, retransmit: Duration::from_millis(200) })
    }

    /// Lets nothing through until the rule is removed or its time is over; what was on its way arrives then. Between a
    /// node and a [`peer`](Self::peer) it is the nodes that cannot reach each other.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If the rule counts matches: a partition lasts.
    #[track_caller]
    pub fn cut_off(self) -> Rule {
        self.install(Action::Partition)
    }

    /// Refuses the new connection; on TCP, where the system has taken it already, it is reset at once. Only for rules
    /// that begin with [`when_connecting`](crate::FakeCluster::when_connecting).
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn refuse(self) -> Rule {
        self.install(Action::Refuse)
    }

    /// Takes the new connection, and reads from it only after this time.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn slow_accept(self, time: Duration) -> Rule {
        self.install(Action::SlowAccept(time))
    }

    /// Writes this to the new connection before anything was asked: what Kafka never does, as its clients speak first.
    /// So does a server of another protocol with its banner.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn speak_first(self, text: impl Into<String>) -> Rule {
        self.install(Action::SpeakFirst(text.into()))
    }

    /// Takes the new connection, and never reads from it.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn black_hole(self) -> Rule {
        self.install(Action::BlackHole)
    }
}
