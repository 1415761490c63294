//! Administration: [`AdminClient`].

mod cluster;
mod driver;
mod route;
mod topics;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest, MetadataRequest,
    Request, Str,
};

pub use self::cluster::ClusterInfo;
use self::route::{ItemAnswer, Route, Target};
pub use self::topics::NewTopic;
use crate::drive;
use crate::error::{KrafkaError, Result};
use crate::kafka::Kafka;
use crate::limits::{MAX_STRING, finite};
use crate::network::{CallError, Connection};
use crate::types::TopicInfo;

/// Kafka's `default.api.timeout.ms`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What became of each item of a call.
pub type ItemResults<T> = BTreeMap<Arc<str>, Result<T>>;

/// A client for administration: topics and the cluster.
///
/// Calls about several items return a result for each. What a retry can help with (a controller that moves, a broker
/// that goes away, a quota) is retried until the timeout, 60 s by default.
///
/// # Cancel safety
/// Dropping a call's future gives it up; a request that was sent may still take effect.
#[derive(Clone, Debug)]
pub struct AdminClient {
    kafka: Kafka,
    timeout: Duration,
}

impl AdminClient {
    pub(crate) fn new(kafka: Kafka) -> Self {
        Self { kafka, timeout: DEFAULT_TIMEOUT }
    }

    /// Returns the same client with another timeout for its calls.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = finite(timeout);
        self
    }

    /// Creates topics. A result of `Ok` means that the controller has accepted the topic; the brokers learn of it
    /// within moments, which producers and consumers of this crate wait out.
    ///
    /// ```no_run
    /// # async fn example(kafka: krafka::Kafka) -> krafka::Result<()> {
    /// let results = kafka.admin().create_topics([krafka::NewTopic::new("orders", 12)]).await?;
    /// for (topic, result) in results {
    ///     println!("{topic}: {result:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`KrafkaError::Config`] when a name is empty or given twice, or when a name or a setting is longer than any
    /// request can carry. Per topic: it exists (`TOPIC_ALREADY_EXISTS`), its
    /// name is not valid (`INVALID_TOPIC_EXCEPTION`), and so on, with the broker's words.
    pub async fn create_topics(&self, topics: impl IntoIterator<Item = NewTopic>) -> Result<ItemResults<()>> {
        let topics: Arc<[NewTopic]> = topics.into_iter().collect();
        let names = distinct(topics.iter().map(|topic| topic.name.clone()))?;
        topics.iter().try_for_each(NewTopic::check)?;
        let results = self
            .run("creating topic", Target::Controller, names, |connection, names, time| {
                let request = topics::create_request(&topics, &names, time);
                async move { Ok(topics::created(call::<CreateTopicsRequest>(&connection, request, time).await?)) }
            })
            .await;
        Ok(self.changed(results))
    }

    /// Deletes topics, with all their records.
    ///
    /// # Errors
    /// [`KrafkaError::Config`] when a name is empty or given twice. Per topic: [`KrafkaError::UnknownTopic`], a missing
    /// permission, and so on.
    pub async fn delete_topics(&self, names: impl IntoIterator<Item = impl Into<String>>) -> Result<ItemResults<()>> {
        let names = distinct(names.into_iter().map(|name| Str::from(name.into())))?;
        let results = self
            .run("deleting topic", Target::Controller, names, |connection, names, time| async move {
                let version = connection.version::<DeleteTopicsRequest>()?;
                let request = topics::delete_request(names, version, time);
                Ok(topics::deleted(connection.submit_at(request, version, grace(time)).await?))
            })
            .await;
        Ok(self.changed(results))
    }

    /// Gives topics more partitions: `(name, how many in all)`.
    ///
    /// Keys move to other partitions when their number changes.
    ///
    /// # Errors
    /// [`KrafkaError::Config`] when a name is empty or given twice. Per topic: [`KrafkaError::UnknownTopic`],
    /// `INVALID_PARTITIONS` when it has as many already, and so on.
    pub async fn create_partitions(
        &self,
        counts: impl IntoIterator<Item = (impl Into<String>, i32)>,
    ) -> Result<ItemResults<()>> {
        let counts: Arc<[(Str, i32)]> =
            counts.into_iter().map(|(name, count)| (Str::from(name.into()), count)).collect();
        let names = distinct(counts.iter().map(|(name, _)| name.clone()))?;
        let results = self
            .run("creating partitions of topic", Target::Controller, names, |connection, names, time| {
                let request = topics::partitions_request(&counts, &names, time);
                async move {
                    Ok(topics::partitions_created(call::<CreatePartitionsRequest>(&connection, request, time).await?))
                }
            })
            .await;
        Ok(self.changed(results))
    }

    /// Returns topics with their partitions, leaders and replicas, as one broker knows them at this moment.
    ///
    /// # Errors
    /// [`KrafkaError::Config`] when a name is empty or given twice. Per topic: [`KrafkaError::UnknownTopic`], a missing
    /// permission, and so on.
    pub async fn describe_topics(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<ItemResults<TopicInfo>> {
        let names = distinct(names.into_iter().map(|name| Str::from(name.into())))?;
        let results = self
            .run("describing topic", Target::Any, names, |connection, names, time| async move {
                let request = topics::describe_request(Some(names));
                Ok(topics::described(call::<MetadataRequest>(&connection, request, time).await?))
            })
            .await;
        Ok(named(results))
    }

    /// Returns all topics that this client may see, Kafka's internal ones included, in order of their names.
    ///
    /// # Errors
    /// When no broker answers within the timeout.
    pub async fn list_topics(&self) -> Result<Vec<TopicInfo>> {
        self.run_one("listing topics of", |connection, time| async move {
            let request = topics::describe_request(None);
            let topics = topics::described(call::<MetadataRequest>(&connection, request, time).await?);
            // A topic with an error is one in the middle of its creation or deletion.
            let mut listed: Vec<TopicInfo> = topics.into_iter().filter_map(|(_, info)| info.ok()).collect();
            listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            Ok(Ok(listed))
        })
        .await
    }

    /// Returns the cluster's id and its brokers.
    ///
    /// # Errors
    /// When no broker answers within the timeout.
    pub async fn describe_cluster(&self) -> Result<ClusterInfo> {
        self.run_one("describing", |connection, time| async move {
            let request = DescribeClusterRequest::default();
            Ok(cluster::described(call::<DescribeClusterRequest>(&connection, request, time).await?))
        })
        .await
    }

    async fn run<T, F>(
        &self,
        what: &'static str,
        target: Target,
        items: Vec<Str>,
        ask: impl Fn(Connection, Vec<Str>, Duration) -> F,
    ) -> BTreeMap<Str, Result<T>>
    where
        F: Future<Output = Result<Vec<(Str, ItemAnswer<T>)>, CallError>>,
    {
        let route = Route::new(what, items, self.timeout, self.kafka.environment().seed(), drive::now());
        driver::run(&self.kafka, target, route, ask).await
    }

    /// A call about the one cluster.
    async fn run_one<T, F>(&self, what: &'static str, ask: impl Fn(Connection, Duration) -> F) -> Result<T>
    where
        F: Future<Output = Result<ItemAnswer<T>, CallError>>,
    {
        let cluster = Str::from_static("the cluster");
        let ask = |connection, _, time| {
            let asked = ask(connection, time);
            async { Ok(vec![(Str::from_static("the cluster"), asked.await?)]) }
        };
        let mut results = self.run(what, Target::Any, vec![cluster.clone()], ask).await;
        results.remove(&cluster).expect("a call returns a result for each item")
    }

    /// Makes the handle look again at topics that it knows and that have changed.
    fn changed(&self, results: BTreeMap<Str, Result<()>>) -> ItemResults<()> {
        let snapshot = self.kafka.cluster().snapshot();
        let is_known = |name: &Str| snapshot.topics.contains_key(name) || snapshot.errors.contains_key(name);
        let changed: Vec<Str> = results
            .iter()
            .filter(|(name, result)| result.is_ok() && is_known(name))
            .map(|(name, _)| name.clone())
            .collect();
        if !changed.is_empty() {
            self.kafka.cluster().refresh(&changed);
        }
        named(results)
    }
}

async fn call<R: Request>(connection: &Connection, request: R, time: Duration) -> Result<R::Response, CallError>
where
    R::Response: Send + 'static,
{
    connection.call(request, grace(time)).await
}

/// A broker may use all of the time that it was given, and its answer still has to arrive.
fn grace(time: Duration) -> Duration {
    time + Duration::from_millis(500)
}

fn named<T>(results: BTreeMap<Str, Result<T>>) -> ItemResults<T> {
    results.into_iter().map(|(name, result)| ((&*name).into(), result)).collect()
}

fn distinct(names: impl Iterator<Item = Str>) -> Result<Vec<Str>> {
    let mut names: Vec<Str> = names.collect();
    if names.iter().any(|name| name.is_empty()) {
        return Err(KrafkaError::config("a topic name is empty: give 1 to 249 of the characters a-z A-Z 0-9 . _ -"));
    }
    if let Some(name) = names.iter().find(|name| name.len() > MAX_STRING) {
        let (given, begin) = (name.len(), name.chars().take(40).collect::<String>());
        let message = format!("the topic name '{begin}…' has {given} bytes: give 249 characters at most");
        return Err(KrafkaError::config(message));
    }
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(KrafkaError::config(format!("topic '{}' is given twice in one call", pair[0])));
    }
    Ok(names)
}
