//! What a client goes through that stays connected for long, on a cluster whose nodes start, die, fall silent and move.
//!
//! A trial names the scenarios that it judges in its doc comment, and again where it is listed; it goes through the
//! public handle. It runs on real Kafka and on the fake, which must agree. What it needs to see of the network it
//! sees from the road that its client goes by (`road.rs`).

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::protocol::MetadataRequest;
use krafka::protocol::api::metadata::MetadataRequestTopic;
use krafka::{Kafka, KafkaBuilder, KrafkaError, NewTopic, Record};
use scenarios::{Failure, Result, ensure};

use crate::clock::now;
use crate::provider::stage::{Ground, NODES, Stage};

mod connections;
mod leaders;
mod lifecycle;
mod metadata;
mod racks;
mod rebootstrap;
mod road;
mod security;
mod silence;
mod throttling;
mod truncation;
mod upgrades;
mod versions;
mod work;

/// A trial at work.
pub type Trying<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// How long a trial may take, where a node takes five to ten seconds to start.
const BOUND: Duration = Duration::from_secs(90);

/// How long one may take that is long.
const LONG: Duration = Duration::from_secs(400);

/// How long one may wait for what comes about by itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// One trial.
#[derive(Clone, Copy)]
pub struct Trial {
    /// The scenarios that it judges.
    pub ids: &'static str,
    /// Its name: the function's.
    pub name: &'static str,
    /// What kind of cluster it is for.
    pub ground: Ground,
    /// Whether it takes so long that it runs only when asked for.
    pub is_long: bool,
    /// Goes through it.
    pub run: for<'a> fn(&'a Stage) -> Trying<'a>,
}

impl Trial {
    /// What it is called in the table.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.ids, self.name)
    }

    /// Goes through it, and leaves all nodes up and running.
    ///
    /// # Errors
    /// What did not hold.
    pub fn run_on(&self, stage: &Stage) -> Result<()> {
        let bound = if self.is_long { LONG } else { BOUND };
        let verdict = stage.block_on(bound, (self.run)(stage));
        stage.block_on(BOUND, stage.heal())?;
        verdict
    }
}

macro_rules! trials {
    (@long) => { false };
    (@long long) => { true };
    ($($ids:literal $module:ident :: $name:ident on $ground:ident $($long:ident)?;)+) => {
        /// All trials, in the order in which they run.
        #[must_use]
        pub fn all() -> Vec<Trial> {
            vec![$(Trial {
                ids: $ids,
                name: stringify!($name),
                ground: Ground::$ground,
                is_long: trials!(@long $($long)?),
                run: |stage| Box::pin($module::$name(stage)),
            },)+]
        }
    };
}

trials! {
    "AU-03" security::a_mechanism_that_is_not_enabled_is_refused_with_those_that_are on Doors;
    "AU-06" security::nothing_goes_before_the_login on Doors;
    "AU-10" security::tokens_are_waited_for_and_shared on Doors;
    "AU-11" security::a_password_that_changed_counts_for_the_next_login on Doors;
    "AU-13,MD-05" security::permissions_come_and_go on Doors;
    "TL-03" security::a_strangers_certificate_is_refused on Doors;
    "CB-01,04" connections::one_server_that_answers_is_enough on Nodes;
    "CB-03,04" connections::where_nobody_answers_each_address_is_named on Nodes;
    "CB-06,32" connections::traffic_goes_to_the_advertised_addresses on Nodes;
    "CB-10" connections::concurrent_callers_share_a_dial on Nodes;
    "CB-12" connections::what_the_broker_closed_is_made_anew on Nodes;
    "CB-13" connections::what_is_idle_is_closed_and_made_anew on Nodes;
    "CB-19" connections::a_long_poll_holds_up_nobody on Nodes;
    "CB-24" connections::too_large_an_answer_is_refused_with_both_sizes on Nodes;
    "CB-26" connections::unanswered_records_go_on_after_a_bad_one on Nodes;
    "CB-29" versions::odd_client_ids_are_taken on Nodes;
    "AV-01,12,CB-29" versions::versions_are_learned_in_one_more_round_trip_at_most on Nodes;
    "AV-05" versions::an_api_that_is_absent_fails_here on Nodes;
    "AV-06" versions::versions_that_do_not_meet_fail_here on Nodes;
    "AV-10" versions::features_are_told on Nodes;
    "AV-14" versions::versions_may_be_asked_for_at_every_version on Nodes;
    "AV-15" versions::only_a_broker_that_is_known_is_told_who_it_is on Nodes;
    "MD-01" metadata::who_waits_for_one_topic_asks_once on Nodes;
    "MD-02" metadata::a_topic_that_comes_late_is_waited_for on Nodes;
    "MD-03" metadata::a_topic_that_never_comes_is_given_up_at_the_deadline on Nodes;
    "MD-04" metadata::a_name_that_cannot_be_is_refused_at_once on Nodes;
    "MD-11" metadata::a_topic_that_is_made_again_is_a_new_one on Nodes;
    "MD-12" metadata::added_partitions_are_used on Nodes;
    "MD-15" metadata::the_idle_ask_once_in_each_age on Nodes;
    "MD-18" metadata::topics_that_rest_are_not_asked_about on Nodes;
    "MD-24" metadata::descriptions_in_pieces_tell_each_partition_once on Nodes;
    "MD-26" metadata::topics_are_made_by_themselves_for_who_wants_it on Nodes;
    "CB-31" lifecycle::closing_ends_what_waits on Nodes;
    "LC-02" lifecycle::dropped_clients_close_their_sockets on Nodes;
    "LC-03" lifecycle::closing_twice_is_closing_once on Nodes;
    "LC-06" lifecycle::coming_and_going_leaves_nothing on Nodes;
    "LC-07" lifecycle::who_shares_a_handle_outlives_the_other on Nodes;
    "TH-01,04,09" throttling::a_throttled_connection_is_silent_alone on Nodes;
    "TH-03" throttling::who_cannot_wait_out_a_silence_is_told_in_time on Nodes;
    "CB-07" silence::a_silent_bootstrap_server_is_passed_over on Nodes;
    "CB-14,15" silence::a_late_answer_ends_its_connection on Nodes;
    "CB-23" silence::a_silent_broker_is_not_waited_for_where_others_know on Nodes;
    "CB-28" silence::a_killed_broker_fails_its_calls_at_once on Nodes;
    "CB-09" silence::an_address_that_refuses_is_dialled_as_often_as_the_backoff_allows on Nodes;
    "LE-08,19" leaders::nothing_is_lost_with_a_killed_leader on Nodes;
    "LE-19" leaders::nothing_is_lost_with_a_silent_leader on Nodes;
    "LE-28,MD-08" leaders::nothing_is_lost_while_replicas_move on Nodes;
    "MD-22,RB-06" leaders::nothing_is_lost_while_all_nodes_are_restarted on Nodes long;
    "LE-01" leaders::a_former_leader_names_the_next on Nodes;
    "LE-09" truncation::a_truncated_log_is_read_on_from_where_it_parts on Nodes;
    "LE-15" leaders::a_seek_with_an_older_epoch_lands_where_it_ended on Nodes;
    "LE-24" racks::records_come_from_the_replica_in_ones_rack on Nodes;
    "LE-25" racks::a_position_that_no_replica_has_is_reset on Nodes;
    "LE-26" racks::nothing_is_lost_with_a_killed_replica_in_ones_rack on Nodes;
    "MD-23" racks::a_group_rebalances_when_its_partitions_change_racks on Nodes;
    "CB-22" rebootstrap::a_node_that_moved_is_found on Nodes long;
    "RB-05" rebootstrap::another_node_at_an_address_is_noticed on Nodes;
    "RB-10" rebootstrap::who_lost_all_brokers_goes_on_when_they_are_back on Nodes;
    "RB-01,02,09" rebootstrap::a_cluster_that_moved_is_found_through_its_bootstrap_servers on Nodes;
    "AV-07,08,09" upgrades::nothing_is_lost_while_the_cluster_changes_its_release on Releases long;
}

/// A client of the cluster's nodes.
fn client(stage: &Stage) -> Result<KafkaBuilder> {
    Ok(Kafka::builder(stage.servers("PLAINTEXT")?).bootstrap_timeout(PATIENCE))
}

/// Waits for something, and says what it was if it takes too long.
async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> Result<T> {
    let late = |_| Failure::new(format!("{what}: nothing after {limit:?}"));
    tokio::time::timeout(limit, future).await.map_err(late)
}

/// Asks until something has come about.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    let asking = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(PATIENCE, what, asking).await
}

/// A new topic, of which each node knows who leads its partitions.
async fn topic(stage: &Stage, new: impl FnOnce(&str) -> NewTopic) -> Result<String> {
    let (name, kafka) = (stage.name("trial"), client(stage)?.connect().await?);
    for made in kafka.admin().create_topics([new(&name)]).await?.into_values() {
        made?;
    }
    for broker in kafka.admin().describe_cluster().await?.brokers {
        let connection = kafka.broker_connection(broker.id).await?;
        let topics =
            Some(vec![MetadataRequestTopic { name: Some((&*name).into()), ..MetadataRequestTopic::default() }]);
        let request = MetadataRequest { topics, ..MetadataRequest::default() };
        let is_led = async || {
            let topic = connection.call(request.clone()).await.ok()?.topics.pop()?;
            let partitions =
                Some(topic.partitions).filter(|partitions| topic.error_code == 0 && !partitions.is_empty())?;
            partitions.iter().all(|partition| partition.leader_id >= 0).then_some(())
        };
        until("the topic has leaders", is_led).await?;
    }
    Ok(name)
}

/// The error of what must not succeed.
fn refused<T>(result: krafka::Result<T>, what: &str) -> Result<KrafkaError> {
    result.err().ok_or_else(|| Failure::new(format!("{what} succeeded")))
}

/// Fails unless an error says all of it.
fn says(error: &KrafkaError, words: &[&str]) -> Result<()> {
    let text = Failure::from(error.clone()).to_string();
    for word in words {
        ensure!(text.contains(word), "'{text}' lacks '{word}'");
    }
    Ok(())
}
