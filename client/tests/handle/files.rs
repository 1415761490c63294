//! Files of certificates, keys and assertions on volumes that hang, on devices that never end, and too large.
//!
//! On a real clock: a paused one stands still while a thread is busy. Whoever opens a pipe to read from it waits until
//! somebody writes, which is how a volume that hangs looks from here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use krafka::{Kafka, KafkaBuilder, KrafkaError, Tls};
use krafka_protocol::ApiKey;
use tracing::Level;

use super::assert_says;
use super::observed::Observed;
use super::tls::{Authority, Folder, behind_tls, host, trusting};

const BOUND: Duration = Duration::from_millis(300);

/// Makes a pipe in the place of whatever is there.
fn pipe(path: &Path) {
    if path.exists() {
        std::fs::remove_file(path).expect("it is ours");
    }
    assert!(Command::new("mkfifo").arg(path).status().expect("it is there").success());
}

/// Lets go whoever reads from the pipe.
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("somebody reads it");
}

/// How many threads read a file whose name begins so: they are named for it.
#[cfg(target_os = "linux")]
fn readers(name: &str) -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("this process has threads");
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|read| read.trim_end() == format!("read {name}")).count()
}

async fn until_nobody_reads(name: &str) {
    while readers(name) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) fn nobody() -> KafkaBuilder {
    Kafka::builder("127.0.0.1:1").connect_timeout(BOUND).bootstrap_timeout(Duration::from_millis(1))
}

/// What comes of it, and how often a timer went off meanwhile.
async fn beside_a_timer<T>(future: impl Future<Output = T>) -> (T, u32) {
    let mut ticks = 0;
    tokio::pin!(future);
    loop {
        tokio::select! {
            done = &mut future => return (done, ticks),
            () = tokio::time::sleep(Duration::from_millis(10)) => ticks += 1,
        }
    }
}

#[tokio::test]
async fn connecting_does_not_wait_for_a_file_that_hangs() {
    let folder = Folder::new("hung-roots");
    let roots = folder.write("hung-roots", "");
    pipe(&roots);

    for _ in 0..3 {
        let connecting = nobody().tls(Tls::new().roots_file(&roots)).connect();
        let (connected, ticks) = beside_a_timer(connecting).await;
        let error = connected.map(drop).expect_err("the file hangs");
        assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
        assert_says(&error, &["hung-roots' cannot be read", "does not end", "300ms", "pipe"]);
        assert!(ticks >= 10, "timers went on: {ticks}");
        #[cfg(target_os = "linux")]
        assert_eq!(readers("hung-roots"), 1, "one thread for all attempts, of all handles");
    }

    write(&roots, &Authority::new().pem);
    until_nobody_reads("hung-roots").await;
}

/// What never ends, or is too long, is read up to a bound, whatever the file says of its own size.
#[tokio::test]
async fn what_is_too_long_is_not_read_to_its_end() {
    let folder = Folder::new("too-long");
    let large = folder.write("large", "");
    std::fs::File::options().write(true).open(&large).expect("it is ours").set_len(17 << 20).expect("it is sparse");

    for path in [PathBuf::from("/dev/zero"), large] {
        for tls in [Tls::new().roots_file(&path), trusting(&Authority::new()).identity_files(&path, &path)] {
            let error = Kafka::builder("a:1").tls(tls).connect().await.expect_err("it is too long");
            let name = path.display().to_string();
            assert_says(&error, &[&name, "cannot be read", "more than 16777216 bytes"]);
        }
    }
}

/// A volume that hangs under a running client: the old certificates are used, by however many attempts, and a thread is
/// lost to it, not one for each.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_volume_that_hangs_leaves_the_old_certificates() {
    let (authority, folder) = (Authority::new(), Folder::new("hung-ca"));
    let roots = folder.write("hung-ca", &authority.pem);
    let (fake, builder) = behind_tls(authority.issue(&host()).server(None));
    let builder = builder.connect_timeout(BOUND).tls(Tls::new().roots_file(&roots));
    let kafka = builder.connect().await.expect("it is trusted");
    let reconnect = async || {
        fake.disconnect(1);
        tokio::time::sleep(Duration::from_millis(20)).await;
        kafka.broker_connection(1).await?.api_versions(ApiKey::Fetch).await
    };
    let (log, _guard) = Observed::start();

    pipe(&roots);
    for _ in 0..5 {
        let (connected, _) = beside_a_timer(reconnect()).await;
        connected.expect("the old certificates are there");
        assert_eq!(readers("hung-ca"), 1);
    }
    let told = log.lines(Level::WARN);
    let told: Vec<_> = told.iter().filter(|line| line.contains("kept the old certificates")).collect();
    assert!(told.len() == 1 && told[0].contains("hung-ca' cannot be read"), "{told:?}");

    write(&roots, "not a certificate");
    until_nobody_reads("hung-ca").await;
    std::fs::remove_file(&roots).expect("it is ours");
    folder.write("hung-ca", &Authority::new().pem);
    let error = reconnect().await.map(drop).expect_err("what is there now is read again");
    assert_says(&error, &["issuer is not trusted"]);
}

/// A runtime ends though a file hangs that one of its tasks wanted.
#[test]
fn a_file_that_hangs_does_not_hold_up_the_end_of_a_runtime() {
    let folder = Folder::new("hung-end");
    let roots = folder.write("hung-end", "");
    pipe(&roots);
    let (ended, end) = std::sync::mpsc::channel();

    std::thread::spawn({
        let roots = roots.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.expect("a runtime");
            let connecting = nobody().connect_timeout(Duration::from_secs(600)).tls(Tls::new().roots_file(&roots));
            runtime.spawn(connecting.connect());
            runtime.block_on(async { tokio::time::sleep(Duration::from_millis(100)).await });
            drop(runtime);
            ended.send(()).expect("the test waits");
        }
    });

    end.recv_timeout(Duration::from_secs(5)).expect("the runtime ends");
    write(&roots, "");
}

/// Keys and certificates of clients, too.
#[tokio::test]
async fn a_key_that_hangs_is_named() {
    let (authority, folder) = (Authority::new(), Folder::new("hung-key"));
    let chain = folder.write("chain", &authority.issue("client").chain);
    let key = folder.write("hung-key", "");
    pipe(&key);

    let connecting = nobody().tls(trusting(&authority).identity_files(chain, &key)).connect();
    let error = connecting.await.map(drop).expect_err("the key hangs");
    assert_says(&error, &["hung-key' cannot be read", "does not end"]);

    write(&key, "");
}

#[cfg(feature = "oidc")]
mod assertions {
    use krafka::{Assertion, Environment, Oidc};

    use super::*;
    use crate::handle::oidc::{Endpoint, fails};

    fn shown(assertion: Assertion) -> Oidc {
        let endpoint = Endpoint::granting("t0ken", 300);
        Oidc::jwt_bearer("http://login/token", assertion).environment(endpoint.environment()).timeout(BOUND)
    }

    #[tokio::test]
    async fn a_file_that_hangs_is_named() {
        let folder = Folder::new("hung-jwt");
        let path = folder.write("hung-jwt", "");
        pipe(&path);

        for assertion in [Assertion::from_file(&path), Assertion::signed_by_file(&path)] {
            let (error, ticks) = beside_a_timer(fails(shown(assertion))).await;
            assert_says(&error, &["hung-jwt' cannot be read", "does not end"]);
            assert!(ticks >= 5, "timers went on: {ticks}");
            #[cfg(target_os = "linux")]
            assert_eq!(readers("hung-jwt"), 1);
        }

        write(&path, "");
    }

    #[tokio::test]
    async fn a_device_is_not_read_to_its_end() {
        for assertion in [Assertion::from_file("/dev/zero"), Assertion::signed_by_file("/dev/zero")] {
            let error = fails(shown(assertion)).await;
            assert_says(&error, &["'/dev/zero' cannot be read", "more than 16777216 bytes"]);
        }
    }

    /// An endpoint's issuers are files, too.
    #[tokio::test]
    async fn the_issuers_of_an_endpoint_that_hang_are_named() {
        let folder = Folder::new("hung-idp");
        let path = folder.write("hung-idp", "");
        pipe(&path);
        let oidc = Oidc::client_credentials("https://login/token", "a", "b").tls(Tls::new().roots_file(&path));
        let oidc = oidc.environment(Environment::new(krafka::TcpConnect, 1)).timeout(BOUND);

        let (error, ticks) = beside_a_timer(fails(oidc)).await;
        assert_says(&error, &["the token endpoint", "hung-idp' cannot be read"]);
        assert!(ticks >= 5, "timers went on: {ticks}");

        write(&path, "");
    }
}
