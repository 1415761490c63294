//! krafka beside the peers: one workload a run, and one line of JSON with what it cost.
//!
//! ```text
//! krafka-perf produce|consume|latency|first --bootstrap HOST:PORT --topic T [--records N] [--size BYTES]
//!             [--compression C] [--acks all|1|0] [--linger MS] [--batch BYTES] [--window N]
//!             [--partitions N] [--rate N] [--e2e 0|1] [--variant shared]
//! ```
//!
//! * `produce` enqueues as fast as it can and awaits the delivery of each record, at most `--window` behind.
//! * `consume` reads all partitions from the beginning, without a group.
//! * `latency` sends `--rate` records a second, and with `--e2e 1` reads them back, by a handle of its own unless
//!   `--variant shared`.
//! * `first` prints `acked` as soon as one record is acknowledged.
//!
//! Values come from `payload-SIZE.bin` in the folder `BENCH_DATA` (or `data`), and are made up where that is missing.

mod arguments;
mod measure;

use std::collections::VecDeque;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use krafka::consumer::AutoOffsetReset;
use krafka::producer::Acks;
use krafka::{Compression, Consumer, DeliveryHandle, Kafka, Producer, Record, Str};

use arguments::Arguments;
use measure::{Clock, Run, quantiles};

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("krafka-perf: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let kafka = connect(&arguments).await?;
    match arguments.mode.as_str() {
        "produce" => produce(&kafka, &arguments).await,
        "consume" => consume(&kafka, &arguments).await,
        "latency" => latency(&kafka, &arguments).await,
        "first" => first(&kafka, &arguments).await,
        mode => Err(format!("{mode:?} is no workload: expected produce, consume, latency or first").into()),
    }
}

async fn connect(arguments: &Arguments) -> krafka::Result<Kafka> {
    Kafka::builder(arguments.text("bootstrap", "127.0.0.1:29092")).client_id("krafka-perf").connect().await
}

async fn producer(kafka: &Kafka, arguments: &Arguments, linger: Duration) -> Result<Producer, Box<dyn Error>> {
    let compression: Compression = arguments.text("compression", "none").parse()?;
    let builder = kafka
        .producer()
        .linger(linger)
        .batch_size(arguments.number("batch", 131_072)? as usize)
        .compression(compression);
    let builder = match arguments.text("acks", "all") {
        "all" | "-1" => builder.acks(Acks::All),
        "1" => builder.acks(Acks::Leader).idempotent(false),
        "0" => builder.acks(Acks::None).idempotent(false),
        acks => return Err(format!("--acks {acks}: expected all, 1 or 0").into()),
    };
    Ok(builder.build().await?)
}

async fn consumer(kafka: &Kafka, arguments: &Arguments, reset: AutoOffsetReset) -> Result<Consumer, Box<dyn Error>> {
    let consumer = kafka.consumer_without_group().auto_offset_reset(reset).build().await?;
    let partitions = i32::try_from(arguments.number("partitions", 6)?)?;
    consumer.assign(topic(arguments), (0..partitions).collect()).await?;
    Ok(consumer)
}

fn topic(arguments: &Arguments) -> &str {
    arguments.text("topic", "bench")
}

async fn produce(kafka: &Kafka, arguments: &Arguments) -> Outcome {
    let size = arguments.number("size", 100)? as usize;
    let (records, window) = (arguments.number("records", 1_000_000)?, arguments.number("window", 100_000)? as usize);
    let values = measure::values(size);
    let topic = Str::from(topic(arguments));
    let producer = producer(kafka, arguments, Duration::from_millis(arguments.number("linger", 5)?)).await?;
    let mut handles: VecDeque<DeliveryHandle> = VecDeque::with_capacity(window);

    let mut run = Run::start(Clock::new());
    for (number, value) in (0..records).zip(values.iter().cycle()) {
        if number == records / 2 {
            run.half();
        }
        if handles.len() == window
            && let Some(oldest) = handles.pop_front()
        {
            oldest.await?;
        }
        handles.push_back(producer.enqueue(Record::new(topic.clone(), value.clone())).await?);
    }
    producer.flush().await?;
    for handle in handles {
        handle.await?;
    }
    run.finish("produce", records, records * size as u64, "");
    Ok(producer.close().await?)
}

async fn consume(kafka: &Kafka, arguments: &Arguments) -> Outcome {
    let records = arguments.number("records", 1_000_000)?;

    let mut run = Run::start(Clock::new());
    let consumer = consumer(kafka, arguments, AutoOffsetReset::Earliest).await?;
    let (mut got, mut bytes, mut sum, mut halved) = (0_u64, 0_u64, 0_u64, false);
    while got < records {
        for record in consumer.poll(Duration::from_secs(1)).await? {
            // The sum touches each value, and makes runs comparable.
            let value = record.value.as_deref().unwrap_or_default();
            sum = sum.wrapping_add(record.offset as u64 + value.get(8).map_or(0, |byte| u64::from(*byte)));
            bytes += value.len() as u64;
            got += 1;
        }
        if !halved && got >= records / 2 {
            run.half();
            halved = true;
        }
    }
    run.finish("consume", got, bytes, &format!(r#""sum":{sum}"#));
    Ok(consumer.close().await?)
}

async fn latency(kafka: &Kafka, arguments: &Arguments) -> Outcome {
    let (records, rate) = (arguments.number("records", 1_000_000)?, arguments.number("rate", 1000)?.max(1));
    let size = arguments.number("size", 100)? as usize;
    if size < STAMP {
        return Err(format!("--size {size}: a value carries the time at which it was sent, in {STAMP} bytes").into());
    }
    let clock = Clock::new();
    let topic = Str::from(topic(arguments));
    let value = measure::values(size)[0].clone();
    let producer = producer(kafka, arguments, Duration::ZERO).await?;
    let reader = match arguments.text("e2e", "0") {
        "1" => Some(Reader::start(kafka, arguments, clock, records).await?),
        _ => None,
    };

    // Warm up; with a reader, until it has seen a record.
    for sent in 0_u64.. {
        producer.send(Record::new(topic.clone(), stamped(&value, 0))).await?;
        if sent >= 20 && reader.as_ref().is_none_or(Reader::is_ready) {
            break;
        }
    }
    if reader.is_some() {
        tokio::time::sleep(Duration::from_millis(700)).await;
    }

    let run = Run::start(clock);
    let (mut acks, mut waiting) = (Vec::new(), Vec::new());
    let start = clock.nanos();
    for number in 0..records {
        clock.sleep_until(start + number * 1_000_000_000 / rate);
        let at = clock.nanos();
        let record = Record::new(topic.clone(), stamped(&value, at));
        if reader.is_some() {
            let handle = producer.enqueue(record).await?;
            waiting.push(tokio::spawn(async move { handle.await.map(|_| clock.nanos() - at) }));
        } else {
            producer.send(record).await?;
            acks.push(clock.nanos() - at);
        }
    }
    for handle in waiting {
        acks.push(handle.await??);
    }
    let mut extra = quantiles("ack", &mut acks);
    if let Some(reader) = reader {
        extra = format!("{extra},{}", quantiles("e2e", &mut reader.finish().await?));
    }
    run.finish("latency", records, records * size as u64, &extra);
    Ok(producer.close().await?)
}

async fn first(kafka: &Kafka, arguments: &Arguments) -> Outcome {
    let producer = producer(kafka, arguments, Duration::ZERO).await?;
    producer.send(Record::new(topic(arguments), vec![b'x'; 100])).await?;
    println!("acked");
    Ok(producer.close().await?)
}

/// How many bytes of a value hold the time at which it was sent.
const STAMP: usize = 8;

fn stamped(value: &[u8], nanos: u64) -> Bytes {
    let mut stamped = BytesMut::from(value);
    stamped[..STAMP].copy_from_slice(&nanos.to_be_bytes());
    stamped.freeze()
}

/// The consumer of an end-to-end run, in a task of its own.
struct Reader {
    task: tokio::task::JoinHandle<krafka::Result<Vec<u64>>>,
    ready: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Reader {
    async fn start(kafka: &Kafka, arguments: &Arguments, clock: Clock, records: u64) -> Result<Self, Box<dyn Error>> {
        let own = match arguments.text("variant", "") {
            "shared" => kafka.clone(),
            _ => connect(arguments).await?,
        };
        let consumer = consumer(&own, arguments, AutoOffsetReset::Latest).await?;
        let (ready, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (seen, stopped) = (ready.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let mut delays = Vec::new();
            while (delays.len() as u64) < records && !stopped.load(Ordering::Relaxed) {
                for record in consumer.poll(Duration::from_millis(200)).await? {
                    let stamp = record.value.as_deref().and_then(<[u8]>::first_chunk::<STAMP>);
                    match stamp.map_or(0, |stamp| u64::from_be_bytes(*stamp)) {
                        // A record of the warm-up, or from before.
                        0 => seen.store(true, Ordering::Relaxed),
                        at => delays.push(clock.nanos().saturating_sub(at)),
                    }
                }
            }
            consumer.close().await?;
            drop(own);
            Ok(delays)
        });
        Ok(Self { task, ready, stop })
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) || self.task.is_finished()
    }

    /// Returns the delays of the records, waiting three seconds for those that are missing.
    async fn finish(mut self) -> Result<Vec<u64>, Box<dyn Error>> {
        let delays = match tokio::time::timeout(Duration::from_secs(3), &mut self.task).await {
            Ok(delays) => delays,
            Err(_) => {
                self.stop.store(true, Ordering::Relaxed);
                self.task.await
            }
        };
        Ok(delays??)
    }
}
