//! [`Metrics`] as Prometheus reads them: its text format, version 0.0.4.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Histogram, Metrics};

/// The first bucket ends at 2^8 microseconds, a quarter of a millisecond; the last at 2^26, a minute.
const EXPONENTS: std::ops::RangeInclusive<u32> = 8..=26;

/// Writing to a string does not fail.
const WRITTEN: &str = "a string takes all that is written";

/// The page for one client.
pub(super) fn text(metrics: &Metrics) -> String {
    let mut page = Page { text: String::new(), client: format!("client_id=\"{}\"", escaped(&metrics.client_id)) };
    page.connections(metrics);
    page.brokers(metrics);
    page.requests(metrics);
    page.metadata(metrics);
    page.producers(metrics);
    page.consumers(metrics);
    page.text
}

struct Page {
    text: String,
    /// The label that all lines have.
    client: String,
}

impl Page {
    fn connections(&mut self, metrics: &Metrics) {
        let connections = &metrics.connections;
        self.gauge("connections_open", "Connections that are open.", connections.open as f64);
        for (name, help, count) in [
            ("connections_opened", "Connections that were made.", connections.opened),
            ("connections_failed", "Attempts to connect that failed.", connections.failed),
            ("connections_lost", "Connections that ended otherwise than by the client's wish.", connections.lost),
            ("connections_misrouted", "Attempts that led to another broker than was meant.", connections.misrouted),
            (
                "coordination_fallbacks",
                "Times that max_connections left a request no connection of its own.",
                connections.coordination_fallbacks,
            ),
        ] {
            self.counter(name, help, count);
        }
        self.head("connect_duration_seconds", "Time to connect.", "histogram");
        self.histogram("connect_duration_seconds", "", &connections.connect_time);
    }

    fn brokers(&mut self, metrics: &Metrics) {
        type Read = fn(&super::BrokerMetrics) -> f64;
        let families: [(&str, &str, Read); 4] = [
            ("broker_requests_total", "Requests written to a broker.", |broker| broker.requests as f64),
            ("broker_sent_bytes_total", "Bytes of the requests.", |broker| broker.bytes_sent as f64),
            ("broker_received_bytes_total", "Bytes of the answers.", |broker| broker.bytes_received as f64),
            ("broker_throttle_seconds_total", "Silence that a broker asked for.", |broker| seconds(broker.throttled)),
        ];
        for (name, help, read) in families {
            self.head(name, help, "counter");
            for (id, broker) in &metrics.brokers {
                self.line(name, &format!(",broker=\"{id}\""), read(broker));
            }
        }
    }

    fn requests(&mut self, metrics: &Metrics) {
        self.head("requests_failed_total", "Requests without an answer.", "counter");
        for (api, requests) in &metrics.requests {
            self.line("requests_failed_total", &format!(",api=\"{api}\""), requests.failed as f64);
        }
        self.head("request_duration_seconds", "Time from the write of a request to its answer.", "histogram");
        for (api, requests) in &metrics.requests {
            self.histogram("request_duration_seconds", &format!(",api=\"{api}\""), &requests.time);
        }
    }

    fn metadata(&mut self, metrics: &Metrics) {
        let metadata = &metrics.metadata;
        self.counter("metadata_refreshes", "Metadata that were taken over.", metadata.refreshes);
        self.counter("metadata_failures", "Rounds in which no broker gave metadata.", metadata.failures);
        self.counter("rebootstraps", "Times that the client began again.", metadata.rebootstraps);
        self.counter("cluster_changes", "Times that another cluster answered.", metadata.cluster_changes);
        if let Some(age) = metadata.age {
            self.gauge("metadata_age_seconds", "Time since the last metadata.", seconds(age));
        }
    }

    fn producers(&mut self, metrics: &Metrics) {
        let producers = &metrics.producers;
        for (name, help, count) in [
            ("producer_records_acknowledged", "Records that are acknowledged.", producers.records_acknowledged),
            ("producer_records_failed", "Records that failed for good.", producers.records_failed),
            ("producer_acknowledged_bytes", "Bytes of acknowledged batches.", producers.bytes_acknowledged),
            ("producer_requests", "Produce requests that were sent.", producers.requests),
            ("producer_batches", "Batches that were sent, repeated ones among them.", producers.batches),
            ("producer_retries", "Batches that had to be sent again.", producers.retries),
            ("producer_splits", "Batches that were split.", producers.splits),
            ("producer_epoch_bumps", "Times that a broken sequence took a new epoch or id.", producers.epoch_bumps),
        ] {
            self.counter(name, help, count);
        }
        self.head("producer_delivery_duration_seconds", "Time from a batch's first record to its end.", "histogram");
        self.histogram("producer_delivery_duration_seconds", "", &producers.delivery_time);
    }

    fn consumers(&mut self, metrics: &Metrics) {
        let consumers = &metrics.consumers;
        for (name, help, count) in [
            ("consumer_records", "Records that were handed out.", consumers.records),
            ("consumer_fetches", "Fetches that were answered.", consumers.fetches),
            ("consumer_fetched_bytes", "Bytes of fetched batches.", consumers.bytes),
            ("consumer_commits", "Commits that were answered.", consumers.commits),
            ("consumer_commits_failed", "Commits that failed.", consumers.commits_failed),
            ("consumer_joins", "Times that members asked to join their groups.", consumers.joins),
        ] {
            self.counter(name, help, count);
        }
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) {
        let name = format!("{name}_total");
        self.head(&name, help, "counter");
        self.line(&name, "", count as f64);
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.line(name, "", value);
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        writeln!(self.text, "# HELP krafka_{name} {help}\n# TYPE krafka_{name} {kind}").expect(WRITTEN);
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        let Self { text, client } = self;
        writeln!(text, "krafka_{name}{{{client}{labels}}} {value}").expect(WRITTEN);
    }

    fn histogram(&mut self, name: &str, labels: &str, times: &Histogram) {
        let bucket = format!("{name}_bucket");
        for exponent in EXPONENTS {
            let bound = seconds(Duration::from_micros(1 << exponent));
            self.line(&bucket, &format!("{labels},le=\"{bound}\""), times.within(exponent) as f64);
        }
        self.line(&bucket, &format!("{labels},le=\"+Inf\""), times.count() as f64);
        self.line(&format!("{name}_sum"), labels, seconds(times.sum()));
        self.line(&format!("{name}_count"), labels, times.count() as f64);
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

    /// A family has its head once, before its lines, and no line comes twice.
    #[test]
    fn the_page_is_well_formed() {
        let registry = Registry::new("me".into());
        (1..4).for_each(|id| registry.broker(id).requests.add(1));
        [ApiKey::Produce, ApiKey::Fetch].into_iter().for_each(|key| registry.unanswered(key));

        let page = registry.read(0).to_prometheus();

        let mut seen = std::collections::BTreeSet::new();
        let mut family = "";
        for line in page.lines() {
            assert!(seen.insert(line), "twice: {line}");
            if let Some(head) = line.strip_prefix("# TYPE ") {
                family = head.split(' ').next().expect("a name");
            } else if !line.starts_with("# HELP ") {
                assert!(line.starts_with(family), "{line} is not of {family}");
                let value = line.rsplit(' ').next().expect("a value");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(seen.len() > 100, "{page}");
    }
}
