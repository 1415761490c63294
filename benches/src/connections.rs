//! `krafka-connections`: what an open connection costs a client in memory.
//!
//! Opens 10,000 connections (or as many as it is told) to a broker that another process plays, which is this program
//! again: so that what is measured is the client's. Each connection has its handshake, and answers a request.
//!
//! `ulimit -n 20000; cargo run --release -p krafka-benches --bin krafka-connections -- 10000`

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use krafka::Kafka;
use krafka::protocol::BrokerConnection;
use krafka_protocol::api::api_versions::ApiVersion;
use krafka_protocol::api::metadata::MetadataResponseBroker;
use krafka_protocol::frame::encode_response;
use krafka_protocol::{
    ApiKey, ApiVersionsResponse, Bytes, MetadataRequest, MetadataResponse, Reader, Str, decode_request_header,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SERVE: &str = "--serve";

/// How many attempts are under way at a time: the other side's queue of them is short.
const AT_ONCE: usize = 100;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Result<()> {
    let argument = std::env::args().nth(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if argument.as_deref() == Some(SERVE) {
        return runtime.block_on(serve());
    }
    let wanted = argument.map_or(Ok(10_000), |number| number.parse())?;
    let (mut broker, port) = start_broker()?;
    let measured = runtime.block_on(measure(wanted, port));
    broker.kill()?;
    broker.wait()?;
    measured
}

async fn measure(wanted: usize, port: u16) -> Result<()> {
    let kafka = Kafka::builder(format!("127.0.0.1:{port}")).connect().await?;
    kafka.admin().list_topics().await?;
    let before = resident_bytes()?;
    let mut connections: Vec<BrokerConnection> = Vec::with_capacity(wanted);
    while connections.len() < wanted {
        let missing = (wanted - connections.len()).min(AT_ONCE);
        let opening: Vec<_> = (0..missing)
            .map(|_| {
                let kafka = kafka.clone();
                tokio::spawn(async move { kafka.broker_connection(1).await })
            })
            .collect();
        for opened in opening {
            connections.push(opened.await??);
        }
    }
    let open = resident_bytes()?;
    for connection in &connections {
        connection.call(MetadataRequest::default()).await?;
    }
    let used = resident_bytes()?;

    let each = |bytes: u64| bytes.saturating_sub(before) / wanted as u64;
    println!("{wanted} connections: {} KiB resident before", before / 1024);
    println!("opened:              {} KiB, {} bytes each", open / 1024, each(open));
    println!("used once:           {} KiB, {} bytes each", used / 1024, each(used));
    Ok(())
}

/// The memory of this process that is in RAM, as Linux tells it.
fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

/// This program as a broker, and the port that it listens on.
fn start_broker() -> Result<(Child, u16)> {
    let mut broker = Command::new(std::env::current_exe()?).arg(SERVE).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(broker.stdout.take().ok_or("it has no output")?).read_line(&mut line)?;
    Ok((broker, line.trim().parse()?))
}

async fn serve() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    println!("{port}");
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            // A client that goes away is the end of it.
            let _ = answer(stream, port).await;
        });
    }
}

/// Says which APIs there are, and that this is the only broker of its cluster.
async fn answer(mut stream: TcpStream, port: u16) -> Result<()> {
    loop {
        let mut body = vec![0; stream.read_u32().await? as usize];
        stream.read_exact(&mut body).await?;
        let header = decode_request_header(&mut Reader::new(Bytes::from(body)))?;
        let key = ApiKey::try_from(header.key).map_err(|_| "an API that is not Kafka's")?;
        let frame = match key {
            ApiKey::ApiVersions => {
                let api = |key: ApiKey, max_version| ApiVersion { api_key: key as i16, min_version: 0, max_version };
                let apis = vec![api(ApiKey::ApiVersions, 4), api(ApiKey::Metadata, 12)];
                let response = ApiVersionsResponse { api_keys: apis, ..ApiVersionsResponse::default() };
                encode_response(key, &response, header.version, header.correlation_id)?
            }
            _ => {
                let host = Str::from_static("127.0.0.1");
                let broker = MetadataResponseBroker { node_id: 1, host, port: i32::from(port), ..Default::default() };
                let response = MetadataResponse { brokers: vec![broker], ..MetadataResponse::default() };
                encode_response(key, &response, header.version, header.correlation_id)?
            }
        };
        stream.write_all(&frame.to_bytes()).await?;
    }
}
