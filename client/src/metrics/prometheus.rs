//! [`Metrics`] as Prometheus reads them: its text format, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::{Histogram, Metrics};

/// The first bucket ends at 2^8 microseconds, a quarter of a millisecond; the last at 2^26, a minute.
const EXPONENTS: std::ops::RangeInclusive<u32> = 8..=26;

/// Writing to a string does not fail.
const WRITTEN: &str = "a string takes all that is written";

/// The page for some clients: each family of lines has its head once, whoever they are of.
pub(super) fn text<'a>(clients: impl IntoIterator<Item = &'a Metrics>) -> String {
    let mut page = Page { text: String::new(), clients: labelled(clients) };
    page.connections();
    page.brokers();
    page.requests();
    page.metadata();
    page.producers();
    page.consumers();
    page.text
}

/// Each client with the labels that all its lines have.
fn labelled<'a>(clients: impl IntoIterator<Item = &'a Metrics>) -> Vec<(String, &'a Metrics)> {
    let mut namesakes = BTreeMap::new();
    let labels = |metrics: &'a Metrics| {
        let before: &mut usize = namesakes.entry(&metrics.client_id).or_default();
        *before += 1;
        // Two lines with the same labels would be one figure to Prometheus, which then refuses the page.
        let handle = if *before > 1 { format!(",handle=\"{before}\"") } else { String::new() };
        (format!("client_id=\"{}\"{handle}", escaped(&metrics.client_id)), metrics)
    };
    clients.into_iter().map(labels).collect()
}

struct Page<'a> {
    text: String,
    clients: Vec<(String, &'a Metrics)>,
}

/// The lines of one family and one client.
struct Lines<'a> {
    text: &'a mut String,
    name: &'a str,
    client: &'a str,
}

type Count = fn(&Metrics) -> u64;

impl Page<'_> {
    fn connections(&mut self) {
        let open = |lines: &mut Lines<'_>, metrics: &Metrics| lines.put("", metrics.connections.open as f64);
        self.family("connections_open", "Connections that are open.", "gauge", open);
        let counters: [(&str, &str, Count); 5] = [
            ("connections_opened", "Connections that were made.", |of| of.connections.opened),
            ("connections_failed", "Attempts to connect that failed.", |of| of.connections.failed),
            ("connections_lost", "Connections that ended otherwise than by the client's wish.", |of| {
                of.connections.lost
            }),
            ("connections_misrouted", "Attempts that led to another broker than was meant.", |of| {
                of.connections.misrouted
            }),
            ("coordination_fallbacks", "Times that max_connections left a request no connection of its own.", |of| {
                of.connections.coordination_fallbacks
            }),
        ];
        self.counters(&counters);
        self.family("connect_duration_seconds", "Time to connect.", "histogram", |lines, metrics| {
            lines.histogram("", &metrics.connections.connect_time);
        });
    }

    fn brokers(&mut self) {
        type Read = fn(&super::BrokerMetrics) -> f64;
        let families: [(&str, &str, Read); 4] = [
            ("broker_requests_total", "Requests written to a broker.", |broker| broker.requests as f64),
            ("broker_sent_bytes_total", "Bytes of the requests.", |broker| broker.bytes_sent as f64),
            ("broker_received_bytes_total", "Bytes of the answers.", |broker| broker.bytes_received as f64),
            ("broker_throttle_seconds_total", "Silence that a broker asked for.", |broker| seconds(broker.throttled)),
        ];
        for (name, help, read) in families {
            self.family(name, help, "counter", |lines, metrics| {
                for (id, broker) in &metrics.brokers {
                    lines.put(&format!(",broker=\"{id}\""), read(broker));
                }
            });
        }
    }

    fn requests(&mut self) {
        self.family("requests_failed_total", "Requests without an answer.", "counter", |lines, metrics| {
            for (api, requests) in &metrics.requests {
                lines.put(&format!(",api=\"{api}\""), requests.failed as f64);
            }
        });
        let help = "Time from the write of a request to its answer.";
        self.family("request_duration_seconds", help, "histogram", |lines, metrics| {
            for (api, requests) in &metrics.requests {
                lines.histogram(&format!(",api=\"{api}\""), &requests.time);
            }
        });
    }

    fn metadata(&mut self) {
        self.counters(&[
            ("metadata_refreshes", "Metadata that were taken over.", |of| of.metadata.refreshes),
            ("metadata_failures", "Rounds in which no broker gave metadata.", |of| of.metadata.failures),
            ("rebootstraps", "Times that the client began again.", |of| of.metadata.rebootstraps),
            ("cluster_changes", "Times that another cluster answered.", |of| of.metadata.cluster_changes),
        ]);
        self.family("metadata_age_seconds", "Time since the last metadata.", "gauge", |lines, metrics| {
            if let Some(age) = metrics.metadata.age {
                lines.put("", seconds(age));
            }
        });
    }

    fn producers(&mut self) {
        self.counters(&[
            ("producer_records_acknowledged", "Records that are acknowledged.", |of| of.producers.records_acknowledged),
            ("producer_records_failed", "Records that failed for good.", |of| of.producers.records_failed),
            ("producer_acknowledged_bytes", "Bytes of acknowledged batches.", |of| of.producers.bytes_acknowledged),
            ("producer_requests", "Produce requests that were sent.", |of| of.producers.requests),
            ("producer_batches", "Batches that were sent, repeated ones among them.", |of| of.producers.batches),
            ("producer_retries", "Batches that had to be sent again.", |of| of.producers.retries),
            ("producer_splits", "Batches that were split.", |of| of.producers.splits),
            ("producer_epoch_bumps", "Times that a broken sequence took a new epoch or id.", |of| {
                of.producers.epoch_bumps
            }),
        ]);
        let help = "Time from a batch's first record to its end.";
        self.family("producer_delivery_duration_seconds", help, "histogram", |lines, metrics| {
            lines.histogram("", &metrics.producers.delivery_time);
        });
    }

    fn consumers(&mut self) {
        self.counters(&[
            ("consumer_records", "Records that were handed out.", |of| of.consumers.records),
            ("consumer_fetches", "Fetches that were answered.", |of| of.consumers.fetches),
            ("consumer_fetched_bytes", "Bytes of fetched batches.", |of| of.consumers.bytes),
            ("consumer_commits", "Commits that were answered.", |of| of.consumers.commits),
            ("consumer_commits_failed", "Commits that failed.", |of| of.consumers.commits_failed),
            ("consumer_joins", "Times that members asked to join their groups.", |of| of.consumers.joins),
        ]);
    }

    fn counters(&mut self, counters: &[(&str, &str, Count)]) {
        for (name, help, count) in counters {
            let lines = |lines: &mut Lines<'_>, metrics: &Metrics| lines.put("", count(metrics) as f64);
            self.family(&format!("{name}_total"), help, "counter", lines);
        }
    }

    /// The head of a family, and what each client has of it.
    fn family(&mut self, name: &str, help: &str, kind: &str, write: impl Fn(&mut Lines<'_>, &Metrics)) {
        let Self { text, clients } = self;
        writeln!(text, "# HELP krafka_{name} {help}\n# TYPE krafka_{name} {kind}").expect(WRITTEN);
        for (client, metrics) in clients {
            write(&mut Lines { text, name, client }, metrics);
        }
    }
}

impl Lines<'_> {
    fn put(&mut self, labels: &str, value: f64) {
        self.put_as("", labels, value);
    }

    fn put_as(&mut self, suffix: &str, labels: &str, value: f64) {
        let Self { text, name, client } = self;
        writeln!(text, "krafka_{name}{suffix}{{{client}{labels}}} {value}").expect(WRITTEN);
    }

    fn histogram(&mut self, labels: &str, times: &Histogram) {
        for exponent in EXPONENTS {
            let bound = seconds(Duration::from_micros(1 << exponent));
            self.put_as("_bucket", &format!("{labels},le=\"{bound}\""), times.within(exponent) as f64);
        }
        self.put_as("_bucket", &format!("{labels},le=\"+Inf\""), times.count() as f64);
        self.put_as("_sum", labels, seconds(times.sum()));
        self.put_as("_count", labels, times.count() as f64);
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// The value of a label: a client may be called anything.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use krafka_protocol::ApiKey;

    use super::super::Registry;

    #[test]
    fn figures_stand_where_prometheus_looks_for_them() {
        let registry = Registry::new("a \"b\" \\ c".into());
        registry.connections.opened.add(3);
        registry.connections.closed.add(1);
        registry.broker(7).throttled(super::Duration::from_millis(1_500));
        registry.answered(ApiKey::Produce, super::Duration::from_millis(1));
        registry.answered(ApiKey::Produce, super::Duration::from_secs(90));

        let page = registry.read(0).to_prometheus();

        let client = r#"client_id="a \"b\" \\ c""#;
        for line in [
            format!("krafka_connections_open{{{client}}} 2"),
            format!("krafka_connections_opened_total{{{client}}} 3"),
            format!("krafka_broker_throttle_seconds_total{{{client},broker=\"7\"}} 1.5"),
            format!("krafka_request_duration_seconds_bucket{{{client},api=\"Produce\",le=\"0.000512\"}} 0"),
            format!("krafka_request_duration_seconds_bucket{{{client},api=\"Produce\",le=\"0.001024\"}} 1"),
            format!("krafka_request_duration_seconds_bucket{{{client},api=\"Produce\",le=\"67.108864\"}} 1"),
            format!("krafka_request_duration_seconds_bucket{{{client},api=\"Produce\",le=\"+Inf\"}} 2"),
            format!("krafka_request_duration_seconds_sum{{{client},api=\"Produce\"}} 90.001"),
            format!("krafka_request_duration_seconds_count{{{client},api=\"Produce\"}} 2"),
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
    }

    /// What a strict reader wants: a family has its head once, before its lines, which follow one another; a label is a
    /// name and a quoted value; no series comes twice; buckets count up to the count.
    fn read_strictly(page: &str) -> BTreeMap<String, f64> {
        let (mut series, mut families, mut family) = (BTreeMap::new(), BTreeSet::new(), (String::new(), ""));
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').expect("a name and a text");
                let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("a type after its help");
                let kind = kind.strip_prefix(name).expect("the same name").trim_start();
                assert!(!text.is_empty() && ["counter", "gauge", "histogram"].contains(&kind), "{help}: {kind}");
                assert!(families.insert(name), "{name} has two heads");
                family = (name.to_owned(), kind);
                continue;
            }
            let (name, rest) = line.split_once('{').expect("labels");
            let suffix = name.strip_prefix(&*family.0).unwrap_or_else(|| panic!("{line} is not of {family:?}"));
            assert!(suffix.is_empty() != (family.1 == "histogram"), "{line}");
            assert!(suffix.is_empty() || ["_bucket", "_sum", "_count"].contains(&suffix), "{line}");
            let mut rest = rest;
            while let Some((label, after)) = rest.split_once("=\"") {
                assert!(label.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
                let mut escaped = false;
                let end = after.find(|c| {
                    let is_end = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    is_end
                });
                rest = &after[end.expect("a label's value ends") + 1..];
                rest = rest.strip_prefix(',').unwrap_or(rest);
            }
            let value = rest.strip_prefix("} ").and_then(|value| value.parse().ok()).expect("a value");
            let labels = line.rsplit_once(' ').expect("a value").0.to_owned();
            assert!(series.insert(labels, value).is_none(), "twice: {line}");
        }
        series
    }

    fn registry(client_id: &str) -> Registry {
        let registry = Registry::new(client_id.into());
        (1..4).for_each(|id| registry.broker(id).requests.add(1));
        [ApiKey::Produce, ApiKey::Fetch].into_iter().for_each(|key| registry.unanswered(key));
        registry.answered(ApiKey::Produce, super::Duration::from_millis(1));
        registry
    }

    #[test]
    fn the_page_is_well_formed() {
        let series = read_strictly(&registry("}\",a=\"\\\n").read(0).to_prometheus());

        assert!(series.len() > 100, "{series:?}");
    }

    /// Also of those with the same name, whose lines would be the same.
    #[test]
    fn several_clients_stand_on_one_page() {
        let clients = ["shop", "till", "shop", "shop"].map(|name| registry(name).read(0));
        let alone = read_strictly(&clients[0].to_prometheus());

        let series = read_strictly(&crate::metrics::prometheus_page(&clients));

        assert_eq!(series.len(), 4 * alone.len());
        assert!(alone.iter().all(|(labels, value)| series[labels] == *value));
        for labels in ["client_id=\"till\"", "client_id=\"shop\",handle=\"2\"", "client_id=\"shop\",handle=\"3\""] {
            assert_eq!(series[&format!("krafka_broker_requests_total{{{labels},broker=\"3\"}}")], 1.0);
        }
        assert!(crate::metrics::prometheus_page([]).lines().all(|line| line.starts_with('#')), "heads alone");
    }
}
