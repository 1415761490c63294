//! Metrics in the encoding of OpenTelemetry, as far as Kafka's clients write them: sums and gauges of numbers.
//!
//! The encoding is that of protocol buffers. What is not known is skipped; histograms are told by name alone.

use krafka_protocol::Str;

/// A metric that a client reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, such as `org.apache.kafka.producer.record.send.total`.
    pub name: Str,
    /// What its numbers mean.
    pub kind: MetricKind,
    /// Its numbers.
    pub points: Vec<MetricPoint>,
}

/// What the numbers of a metric mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// A value as it is now.
    Gauge,
    /// What came since the last push.
    DeltaSum,
    /// What came since the client was made.
    CumulativeSum,
    /// Something with more to it than a number.
    Other,
}

/// One number of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// The number; an integer is read as a floating point number.
    pub value: f64,
    /// What tells it apart from the metric's other numbers.
    pub labels: Vec<(Str, Str)>,
    /// When it was read, in nanoseconds since 1970.
    pub time_unix_nanos: u64,
}

/// The aggregation temporality of sums that begin anew with each push.
const DELTA: u64 = 1;

/// Reads what a client pushed.
pub(crate) fn decode(payload: &[u8]) -> Option<Vec<Metric>> {
    let mut metrics = Vec::new();
    for field in Fields(payload) {
        let (1, Value::Bytes(resource_metrics)) = field? else { continue };
        for field in Fields(resource_metrics) {
            let (2, Value::Bytes(scope_metrics)) = field? else { continue };
            for field in Fields(scope_metrics) {
                let (2, Value::Bytes(metric)) = field? else { continue };
                metrics.push(read_metric(metric)?);
            }
        }
    }
    Some(metrics)
}

fn read_metric(bytes: &[u8]) -> Option<Metric> {
    let mut metric = Metric { name: Str::default(), kind: MetricKind::Other, points: Vec::new() };
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(name)) => metric.name = text(name)?,
            (5, Value::Bytes(gauge)) => {
                metric.kind = MetricKind::Gauge;
                metric.points = read_points(gauge)?;
            }
            (7, Value::Bytes(sum)) => {
                let mut temporality = 0;
                for field in Fields(sum) {
                    if let (2, Value::Number(number)) = field? {
                        temporality = number;
                    }
                }
                metric.kind = if temporality == DELTA { MetricKind::DeltaSum } else { MetricKind::CumulativeSum };
                metric.points = read_points(sum)?;
            }
            _ => {}
        }
    }
    Some(metric)
}

fn read_points(bytes: &[u8]) -> Option<Vec<MetricPoint>> {
    let mut points = Vec::new();
    for field in Fields(bytes) {
        let (1, Value::Bytes(point)) = field? else { continue };
        let mut read = MetricPoint { value: 0.0, labels: Vec::new(), time_unix_nanos: 0 };
        for field in Fields(point) {
            match field? {
                (3, Value::Fixed(nanos)) => read.time_unix_nanos = nanos,
                (4, Value::Fixed(bits)) => read.value = f64::from_bits(bits),
                (6, Value::Fixed(bits)) => read.value = bits.cast_signed() as f64,
                (7, Value::Bytes(label)) => read.labels.push(read_label(label)?),
                _ => {}
            }
        }
        points.push(read);
    }
    Some(points)
}

fn read_label(bytes: &[u8]) -> Option<(Str, Str)> {
    let (mut key, mut value) = (Str::default(), Str::default());
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(name)) => key = text(name)?,
            (2, Value::Bytes(any)) => {
                for field in Fields(any) {
                    value = match field? {
                        (1, Value::Bytes(written)) => text(written)?,
                        (2, Value::Number(flag)) => Str::from((flag != 0).to_string()),
                        (3, Value::Number(number)) => Str::from(number.cast_signed().to_string()),
                        (4, Value::Fixed(bits)) => Str::from(f64::from_bits(bits).to_string()),
                        _ => continue,
                    };
                }
            }
            _ => {}
        }
    }
    Some((key, value))
}

fn text(bytes: &[u8]) -> Option<Str> {
    std::str::from_utf8(bytes).ok().map(Str::from)
}

/// A value of a field, by how it is written.
#[derive(Debug)]
enum Value<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message: number and value of each, or nothing and the end where it is broken.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Fixed(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field that holds bytes.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![(number << 3) | 2, u8::try_from(content.len()).expect("short")];
        bytes.extend_from_slice(content);
        bytes
    }

    #[test]
    fn a_sum_with_a_label_is_read() {
        let label = [field(1, b"client-id"), field(2, &field(1, b"c1"))].concat();
        let mut point = field(7, &label);
        point.push(0x31);
        point.extend_from_slice(&42_i64.to_le_bytes());
        point.push(0x19);
        point.extend_from_slice(&7_u64.to_le_bytes());
        let mut sum = field(1, &point);
        sum.extend_from_slice(&[0x10, 1]);
        let metric = [field(1, b"sends"), field(7, &sum)].concat();
        let payload = field(1, &field(2, &field(2, &metric)));

        let points =
            vec![MetricPoint { value: 42.0, labels: vec![("client-id".into(), "c1".into())], time_unix_nanos: 7 }];
        assert_eq!(decode(&payload), Some(vec![Metric { name: "sends".into(), kind: MetricKind::DeltaSum, points }]));
    }

    #[test]
    fn nothing_is_no_metrics_and_what_is_broken_is_not_read() {
        assert_eq!(decode(&[]), Some(vec![]));
        for broken in [&[0xff, 0xff, 0xff][..], &[0x0a, 5], &[0x0b], &[0x0a, 2, 0x12, 9]] {
            assert_eq!(decode(broken), None, "{broken:?}");
        }
    }
}
