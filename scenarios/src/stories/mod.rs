//! The stories, by what they are about.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use krafka_fake_broker::FakeClusterBuilder;

use crate::{Kind, Result, World};

pub mod admin;
pub mod cluster;
pub mod consuming;
pub mod groups;
pub mod network;
pub mod producing;
pub mod quotas;
pub mod sessions;
pub mod swarm;

/// A story at work.
pub type Telling<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// In which worlds a story makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worlds {
    /// In all: it needs nothing that a real cluster cannot do.
    All,
    /// On the fake, with and without further faults.
    Fake,
    /// On the fake, without further faults: it looks at exactly what happens.
    Scripted,
}

impl Worlds {
    /// Whether the story runs in worlds of this kind.
    #[must_use]
    pub fn contains(self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::Fake => kind != Kind::Real,
            Self::Scripted => kind == Kind::Scripted,
        }
    }
}

/// Whom the fake's listeners let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doors {
    /// Everybody.
    Open,
    /// Who logs in by SASL, and again before [`SESSION`] is over.
    Sessions,
}

impl Doors {
    /// Sets up a fake like that.
    pub(crate) fn of(self, builder: FakeClusterBuilder) -> FakeClusterBuilder {
        match self {
            Self::Open => builder,
            Self::Sessions => {
                let (user, password) = LOGIN;
                builder.user(user, password).connections_max_reauth(SESSION)
            }
        }
    }
}

/// How long a login holds, where it does not for ever (`connections.max.reauth.ms`).
pub const SESSION: Duration = Duration::from_secs(5);

/// The user of clients that log in, and the password.
pub(crate) const LOGIN: (&str, &str) = ("alice", "alice-secret");

/// One story.
#[derive(Clone, Copy)]
pub struct Story {
    /// Its name: the function's.
    pub name: &'static str,
    /// What it proves, in one sentence.
    pub proves: &'static str,
    /// Where it makes sense.
    pub worlds: Worlds,
    /// Whom the fake lets in.
    pub doors: Doors,
    /// Tells it.
    pub tell: for<'a> fn(&'a World) -> Telling<'a>,
}

macro_rules! stories {
    (@doors) => { Doors::Open };
    (@doors $doors:ident) => { Doors::$doors };
    ($($module:ident :: $name:ident in $worlds:ident $(with $doors:ident)?: $proves:literal;)+) => {
        /// All stories, in the order of telling.
        #[must_use]
        pub fn all() -> Vec<Story> {
            vec![$(Story {
                name: stringify!($name),
                proves: $proves,
                worlds: Worlds::$worlds,
                doors: stories!(@doors $($doors)?),
                tell: |world| Box::pin($module::$name(world)),
            },)+]
        }
    };
}

stories! {
    producing::one_record_through_every_room in All:
        "a record is produced, stored and consumed, with its key, value, headers and timestamp";
    producing::every_codec_round_trips in All:
        "records compressed with any codec come back as they were";
    producing::leader_moves_mid_flight in Fake:
        "a leader that moves while batches are in flight loses nothing and repeats nothing";
    producing::lost_produce_response in Fake:
        "a batch whose answer is lost is written once, and acknowledged with its place";
    producing::a_failing_batch_keeps_the_order in Fake:
        "of five batches in flight, one that must be retried does not overtake or fall behind";
    producing::throttled_producer in Fake:
        "a throttled producer waits as long as it is told, and loses nothing";
    producing::flush_waits_for_what_was_before in All:
        "after flush, every record sent before it is acknowledged";
    producing::gone_cluster_fails_definitely in Scripted:
        "when no broker answers, each record fails at its delivery timeout, saying whether it may have been written";
    producing::too_large_batches_are_split in Fake:
        "a batch that the topic does not take is split until it does";
    consuming::consumer_follows_a_moving_leader in Fake:
        "a consumer reads on, without loss or repetition, while leaders move under it";
    consuming::fenced_epoch in Fake:
        "a fetch that is fenced makes the client learn the new epoch and go on at its position";
    consuming::out_of_range_resets in All:
        "a position that the log does not have is reset as the policy says";
    consuming::lost_fetch_session in Fake:
        "a broker that forgets a fetch session costs one full fetch, and no record";
    consuming::truncated_log in Fake:
        "after an unclean election a consumer goes back to where the logs part, and a producer goes on";
    consuming::dropped_polls_lose_nothing in All:
        "a poll or recv that is dropped while it waits takes no record with it";
    consuming::seek_and_pause in All:
        "a consumer reads from where it is told to, and what is paused stays quiet";
    consuming::added_partitions_are_noticed in Scripted:
        "partitions added to a topic are produced to and consumed from without a restart";
    groups::two_members_share in All:
        "two members of a group share the partitions, and read every record once";
    groups::rebalance_under_load in Fake:
        "members join and leave while records flow, and every record is read";
    groups::dead_member_is_replaced in Fake:
        "the partitions of a member that died go to the others after its session";
    groups::dead_members_work_is_done_again in Fake:
        "what a member was handed and had not worked off when it died is read again by the next one";
    groups::group_resumes_where_it_committed in All:
        "a group that comes back goes on where it committed";
    groups::coordinator_moves in Fake:
        "a group whose coordinator moves keeps its members and its offsets";
    cluster::crashed_broker in Fake:
        "a broker that crashes under load costs time and no record";
    cluster::rebootstrap_required in Fake:
        "code 129 makes the client forget the cluster and find it again from its bootstrap servers";
    cluster::beginning_again_under_load in All:
        "a client that is told to begin again under load, with other seed brokers, loses nothing and keeps its place";
    cluster::another_cluster_at_the_old_addresses in Fake:
        "a client whose cluster was replaced by another notices, and goes on with that one";
    cluster::topic_that_comes_late in Fake:
        "a send to a topic that does not exist yet succeeds once it does";
    network::partitioned_client in Fake:
        "a client cut off from every broker goes on where it was when the network comes back";
    network::silent_broker_stalls_nobody_else in Scripted:
        "one silent broker does not hold up the partitions of the others, nor a poll past its timeout";
    network::bytes_in_small_pieces in Fake:
        "a network that delivers a few bytes at a time changes nothing but the time";
    sessions::sessions_end_under_load in Fake with Sessions:
        "producers and a group work on, on the same connections, while their sessions end and are renewed";
    sessions::renewals_fail in Fake with Sessions:
        "a session that cannot be renewed costs a connection and some time, and no record";
    swarm::everything_at_once in Fake:
        "producers and a changing group work through whatever the seed has drawn, and nothing is lost or repeated";
    quotas::producer_over_its_quota in All:
        "a producer over its quota is held to about that rate, and no record fails";
    quotas::makers_of_topics_over_their_quota in All:
        "topics are made, extended and deleted as fast as the quota of changes allows, and who cannot wait is told";
    admin::topics_come_and_go in All:
        "topics are created, described, extended, listed and deleted, and mistakes are named";
}
