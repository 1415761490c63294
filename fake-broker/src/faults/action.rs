//! What a rule does to the requests, or new connections, that it matches.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::after_apply;
use super::carried::{Spoken, Wanted};
use super::damage::Damage;
use super::hints::Hint;
use super::names::{Code, millis};
use super::selector::{Event, Selector};
use crate::context::Context;
use crate::operations::Operation;

/// Changes an answer.
pub(crate) type Edit = Arc<dyn Fn(&mut AnyResponse) + Send + Sync>;

/// What a rule does.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Action {
    /// Counts.
    Observe,
    /// Answers an error.
    ReplyError(Code),
    /// Tells the client to be silent, and mutes its connection.
    #[serde(rename = "throttle_ms", with = "millis")]
    Throttle(Duration),
    /// Waits.
    #[serde(rename = "delay_ms", with = "millis")]
    Delay(Duration),
    /// Closes the connection.
    DropConnection,
    /// Resets the connection.
    ResetConnection,
    /// Answers nothing, for ever.
    Silence,
    /// Answers that the client shall start again from its bootstrap servers.
    Rebootstrap,
    /// Makes the client's epoch one of the past.
    FenceEpoch,
    /// Moves the leaders of the partitions that are asked for.
    MoveLeader(i32),
    /// The same, to any other replica.
    MoveLeaderAway,
    /// Leaves entities out of the answer.
    DropEntity,
    /// Has entities in the answer twice.
    DuplicateEntity,
    /// Sets a field of the answer.
    Set {
        /// The field, named by those on the way to it with dots between.
        field: String,
        /// Its value.
        value: Value,
    },
    /// Gives the client a wrong hint.
    Hint(Hint),
    /// Writes the answer as another version has it.
    Layout(i16),
    /// Harms the bytes of the answer.
    Damage(Damage),
    /// Does something to the cluster.
    ChangeCluster(Operation),
    /// Refuses a new connection.
    Refuse,
    /// Lets a new connection wait before it is served.
    #[serde(rename = "slow_accept_ms", with = "millis")]
    SlowAccept(Duration),
    /// Takes a new connection and never reads from it.
    BlackHole,
    /// Writes to a new connection before anything was asked.
    SpeakFirst(String),
    /// Forgets the connection without telling the client.
    HalfOpen,
    /// Delivers the request once more, on a connection of its own.
    #[serde(rename = "redeliver_ms", with = "millis")]
    Redeliver(Duration),
    /// Frames arrive later.
    Latency {
        /// How much later.
        #[serde(rename = "ms", with = "millis")]
        time: Duration,
        /// By how much it is more or less.
        #[serde(default, rename = "jitter_ms", with = "millis", skip_serializing_if = "Duration::is_zero")]
        jitter: Duration,
    },
    /// So many bytes pass in a second at most.
    Bandwidth {
        /// How many.
        bytes_per_second: u64,
    },
    /// Packets are lost and sent again.
    Loss {
        /// The chance of each packet.
        probability: f64,
        /// When the first one that was lost is sent again.
        #[serde(default = "retransmit", rename = "retransmit_ms", with = "millis")]
        retransmit: Duration,
    },
    /// Nothing passes.
    Partition,
    /// Changes the answer by a function.
    #[serde(skip)]
    Edit(Edit),
}

impl Action {
    /// Says what is wrong with a rule that does this to what the selector names, in one of these requests: it could
    /// never act, or Kafka could never do so.
    ///
    /// # Errors
    ///
    /// The reason.
    pub(crate) fn check(&self, selector: &Selector, requests: &[Spoken], after_handling: bool) -> Result<(), String> {
        self.check_event(selector)?;
        let never = |can: &dyn Fn(&Spoken) -> bool| !requests.iter().any(can);
        match self {
            Self::Rebootstrap if never(&|it| it.key == ApiKey::Metadata && it.version >= 13) => {
                Err("only an answer to Metadata, from version 13 on, tells a client to rebootstrap".to_owned())
            }
            Self::FenceEpoch if never(&|it| super::fencing::fencing(it.key).is_some()) => {
                Err("these requests carry no epoch that could be one of the past".to_owned())
            }
            Self::Hint(hint) if never(&|it| hint.fits(it.key, it.version)) => {
                Err(format!("these requests are not answered with such a hint: {hint:?}"))
            }
            Self::MoveLeader(..1) => Err("nodes are numbered from 1 on: no leader moves to another".to_owned()),
            Self::MoveLeader(_) | Self::MoveLeaderAway if never(&|it| it.can_have(Wanted::Partitions)) => {
                Err("these requests name no partition whose leader could move".to_owned())
            }
            Self::DropEntity | Self::DuplicateEntity if never(&|it| it.answers_entities()) => {
                Err(format!("the answers to these requests list nothing, so that a rule cannot {self}"))
            }
            Self::Layout(version) if never(&|it| has_layout(it.key, *version)) => {
                Err(format!("`layout` is a version that the answer has: none of these has a version {version}"))
            }
            Self::Bandwidth { bytes_per_second: 0 } => Err("a link without bandwidth is a partition".to_owned()),
            Self::Loss { probability, .. } if !(0.0..1.0).contains(probability) => {
                Err("the probability of a loss is at least 0 and less than 1: a link that loses all is a partition"
                    .to_owned())
            }
            Self::SpeakFirst(text) if text.is_empty() => Err("`speak_first` has something to say".to_owned()),
            Self::ReplyError(Code(ErrorCode::NONE)) => Err("`reply_error` NONE is no error".to_owned()),
            Self::ReplyError(Code(code)) if after_handling => after_apply::check(&selector.apis, *code),
            Self::Set { field, value } => {
                super::answers::check_field(&selector.apis, field, value)?;
                match never(&|it| it.answers_field(field)) {
                    true => Err(format!("`{field}` is in no answer of these versions")),
                    false => Ok(()),
                }
            }
            Self::Damage(damage) => damage.check(),
            Self::ChangeCluster(operation) => operation.check(),
            _ => Ok(()),
        }
    }

    /// Says what is wrong with doing this when that happens.
    fn check_event(&self, selector: &Selector) -> Result<(), String> {
        let connects = matches!(self, Self::Refuse | Self::SlowAccept(_) | Self::BlackHole | Self::SpeakFirst(_));
        let is_networks =
            matches!(self, Self::Latency { .. } | Self::Bandwidth { .. } | Self::Loss { .. } | Self::Partition);
        match selector.event {
            Event::Connect if !connects && !matches!(self, Self::Observe | Self::ChangeCluster(_)) => {
                Err(format!("a connection has no request yet, so that a rule cannot {self}"))
            }
            Event::Network if !is_networks && !matches!(self, Self::Observe) => {
                Err(format!("the network carries frames and knows nothing else, so that it cannot {self}"))
            }
            Event::Network if selector.names_contents() => {
                Err("the network knows a frame by `node`, `peer`, `towards`, `connection` and `client_id`".to_owned())
            }
            Event::Network
                if selector.peer.is_some() && (selector.node.is_none() || !matches!(self, Self::Partition)) =>
            {
                Err("between two nodes, `node` and `peer`, there can be a partition and nothing else".to_owned())
            }
            Event::Connect | Event::Request if selector.peer.is_some() || selector.towards.is_some() => {
                Err("`peer` and `towards` are for rules whose event is \"network\"".to_owned())
            }
            Event::Request if connects => Err(format!("to {self} is for rules whose event is \"connect\"")),
            Event::Request | Event::Connect if is_networks => {
                Err(format!("to {self} is for rules whose event is \"network\""))
            }
            _ => Ok(()),
        }
    }

    /// Whether it can be said to this request, in its version.
    pub(crate) fn can_act_on(&self, cx: &Context, request: &AnyRequest, after_handling: bool) -> bool {
        match self {
            // A Metadata answer before version 13 has no room for the error.
            Self::Rebootstrap => cx.key == ApiKey::Metadata && cx.version >= 13,
            Self::FenceEpoch => super::fencing::carries_epoch(request),
            Self::ReplyError(Code(code)) if after_handling => after_apply::can_give(cx.key, *code),
            Self::Hint(hint) => hint.fits(cx.key, cx.version),
            Self::Layout(version) => has_layout(cx.key, *version),
            Self::DropEntity | Self::DuplicateEntity => Spoken { key: cx.key, version: cx.version }.answers_entities(),
            _ => true,
        }
    }

    /// Whether it is the leaders of partitions that it moves.
    pub(crate) fn moves_leaders(&self) -> bool {
        matches!(self, Self::MoveLeader(_) | Self::MoveLeaderAway)
    }
}

/// Whether the answers of an API have such a version.
fn has_layout(key: ApiKey, version: i16) -> bool {
    key.schemas().is_some_and(|[_, answer]| answer.versions.contains(version))
}

/// When Linux first sends a lost packet again.
fn retransmit() -> Duration {
    Duration::from_millis(200)
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observe => f.write_str("observe"),
            Self::ReplyError(Code(code)) if ErrorCode::ALL.contains(code) => write!(f, "answer {}", code.name()),
            Self::ReplyError(Code(code)) => write!(f, "answer the error {}", code.0),
            Self::Throttle(time) => write!(f, "throttle for {time:?}"),
            Self::Delay(time) => write!(f, "delay by {time:?}"),
            Self::DropConnection => f.write_str("drop the connection"),
            Self::ResetConnection => f.write_str("reset the connection"),
            Self::Silence => f.write_str("silence"),
            Self::Rebootstrap => f.write_str("rebootstrap"),
            Self::FenceEpoch => f.write_str("fence the epoch"),
            Self::MoveLeader(node) => write!(f, "move the leader to {node}"),
            Self::MoveLeaderAway => f.write_str("move the leader"),
            Self::DropEntity => f.write_str("leave it out of the answer"),
            Self::DuplicateEntity => f.write_str("answer it twice"),
            Self::Set { field, value } => write!(f, "set {field} to {value}"),
            Self::Hint(hint) => write!(f, "give a wrong hint: {hint:?}"),
            Self::Layout(version) => write!(f, "answer as version {version}"),
            Self::Damage(damage) => write!(f, "damage the answer: {damage:?}"),
            Self::ChangeCluster(operation) => write!(f, "change the cluster: {operation:?}"),
            Self::Refuse => f.write_str("refuse the connection"),
            Self::SlowAccept(time) => write!(f, "accept {time:?} late"),
            Self::BlackHole => f.write_str("never read from the connection"),
            Self::SpeakFirst(text) => write!(f, "speak first: {text:?}"),
            Self::HalfOpen => f.write_str("forget the connection"),
            Self::Redeliver(time) => write!(f, "deliver it again {time:?} later"),
            Self::Latency { time, jitter } => write!(f, "take {time:?} ± {jitter:?}"),
            Self::Bandwidth { bytes_per_second } => write!(f, "carry {bytes_per_second} bytes a second"),
            Self::Loss { probability, retransmit } => {
                write!(f, "lose {probability} of the packets, sent again after {retransmit:?}")
            }
            Self::Partition => f.write_str("carry nothing"),
            Self::Edit(_) => f.write_str("edit the answer"),
        }
    }
}
