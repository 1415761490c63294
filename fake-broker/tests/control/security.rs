//! What an operator changes about who may come in: passwords, certificates; and reassignments that are held.

use krafka_fake_broker::{FakeCluster, Operation, SaslMechanism};
use krafka_protocol::frame::encode_request;
use krafka_protocol::{
    ApiKey, Bytes, ErrorCode, Message, Reader, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    decode_response_header,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ask;

async fn answer(stream: &mut TcpStream, key: ApiKey, version: i16) -> Reader {
    let length = stream.read_i32().await.expect("an answer");
    let mut body = vec![0; usize::try_from(length).expect("a length")];
    stream.read_exact(&mut body).await.expect("a whole one");
    let mut reader = Reader::new(Bytes::from(body));
    decode_response_header(key, version, &mut reader).expect("a header");
    reader
}

/// Logs in as alice by PLAIN: what it comes to.
async fn log_in(fake: &FakeCluster, password: &str) -> ErrorCode {
    let mut stream = TcpStream::connect(fake.bootstrap()).await.expect("it listens");
    let handshake = SaslHandshakeRequest { mechanism: "PLAIN".into() };
    let frame = encode_request(&handshake, 1, 1, None).expect("a legal request");
    stream.write_all(&frame.to_bytes()).await.expect("it reads");
    answer(&mut stream, ApiKey::SaslHandshake, 1).await;
    let auth_bytes = Bytes::from(format!("\0alice\0{password}"));
    let frame = encode_request(&SaslAuthenticateRequest { auth_bytes }, 2, 2, None).expect("a legal request");
    stream.write_all(&frame.to_bytes()).await.expect("it reads");
    let mut reader = answer(&mut stream, ApiKey::SaslAuthenticate, 2).await;
    ErrorCode(SaslAuthenticateResponse::decode(&mut reader, 2).expect("a legal answer").error_code)
}

/// AU-*: a password changes while clients are connected, at once or when a rule says so.
#[tokio::test]
async fn password_changes() {
    let builder = FakeCluster::builder().user("alice", "old").sasl_mechanism(SaslMechanism::Plain);
    let fake = builder.topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    assert_eq!(log_in(&fake, "old").await, ErrorCode::NONE);

    let change = json!({"set_password": {"user": "alice", "password": "n3w"}});
    assert_eq!(ask(&address, "POST", "/cluster", &change.to_string()).await, (200, json!({})));
    assert_eq!(log_in(&fake, "n3w").await, ErrorCode::NONE);
    assert_eq!(log_in(&fake, "old").await, ErrorCode::SASL_AUTHENTICATION_FAILED);

    let change = json!({"set_password": {"user": "alice", "password": "s3cret"}});
    let rule = json!({"when": {"apis": ["SaslHandshake"]}, "do": {"change_cluster": change}});
    let (status, _) = ask(&address, "POST", "/rules", &rule.to_string()).await;
    assert_eq!(status, 201);
    assert_eq!(log_in(&fake, "s3cret").await, ErrorCode::NONE);
    let (_, shown) = ask(&address, "GET", "/rules/1", "").await;
    assert_eq!(shown["hits"], 1);
    assert!(!shown.to_string().contains("s3cret"), "{shown}");
    assert_eq!(shown["rule"]["do"]["change_cluster"]["set_password"]["password"], "[hidden]", "{shown}");

    let in_rust = Operation::SetPassword { user: "alice".to_owned(), password: "4gain".into() };
    assert!(!format!("{in_rust:?}").contains("4gain"));
    let rule = fake.when(ApiKey::SaslHandshake).change_cluster(in_rust);
    assert!(!fake.unfired_rules().concat().contains("4gain"), "{:?}", fake.unfired_rules());
    assert_eq!((log_in(&fake, "4gain").await, rule.hits()), (ErrorCode::NONE, 1));
    fake.set_password("alice", "last");
    assert_eq!(log_in(&fake, "last").await, ErrorCode::NONE);
}

/// A password that nobody can log in with is a mistake, for the port and for rules.
#[tokio::test]
async fn empty_password_is_refused() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    for (user, password, reason) in [
        ("", "x", "`user` is empty, and nobody logs in as such a one"),
        ("alice", "", "`password` is empty, and nobody logs in with such a one"),
    ] {
        let change = json!({"set_password": {"user": user, "password": password}});
        let rule = json!({"when": {"apis": ["Metadata"]}, "do": {"change_cluster": change.clone()}});
        for (path, body, status) in [("/cluster", change, 409), ("/rules", rule, 400)] {
            let told = ask(&address, "POST", path, &body.to_string()).await;
            assert_eq!(told, (status, json!({"error": reason})));
        }
    }
}

/// Reassignments that are held can be listed, and end when they are let go.
#[tokio::test]
async fn reassignments_are_held() {
    let fake = FakeCluster::builder().nodes(3).replication_factor(1).topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let hold = |hold: bool| json!({"hold_reassignments": {"hold": hold}}).to_string();
    let topics = json!([{"name": "orders", "partitions": [{"partition_index": 0, "replicas": [3]}]}]);
    let reassign = json!({"api": "AlterPartitionReassignments", "fields": {"topics": topics}}).to_string();
    let list = json!({"api": "ListPartitionReassignments", "fields": {"topics": null}}).to_string();

    assert_eq!(ask(&address, "POST", "/cluster", &hold(true)).await, (200, json!({})));
    let (_, told) = ask(&address, "POST", "/requests", &reassign).await;
    assert_eq!(told["error_code"], 0, "{told}");
    let (_, ongoing) = ask(&address, "POST", "/requests", &list).await;
    assert_eq!(ongoing["topics"][0]["partitions"][0]["adding_replicas"], json!([3]), "{ongoing}");

    assert_eq!(ask(&address, "POST", "/cluster", &hold(false)).await, (200, json!({})));
    let (_, ongoing) = ask(&address, "POST", "/requests", &list).await;
    assert_eq!(ongoing["topics"], Value::Array(Vec::new()));
    assert_eq!(fake.in_sync_replicas("orders", 0), [3]);
}

#[cfg(feature = "tls")]
mod certificates {
    use std::sync::Arc;

    use krafka_fake_broker::{SecurityProtocol, ServerTls};
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;

    use super::*;
    use crate::certificate;

    /// Who trusts these alone.
    async fn connect(fake: &FakeCluster, trusted: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).expect("PEM")).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.expect("versions").with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(fake.bootstrap()).await.expect("it listens");
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").expect("a name"), stream).await
    }

    /// TL-07: a certificate is swapped while the cluster runs, at once or by a rule: new connections see it.
    #[tokio::test]
    async fn certificate_is_swapped() {
        let [old, new, last] = [certificate(), certificate(), certificate()];
        let tls = ServerTls::from_pem(old.0.as_bytes(), old.1.as_bytes()).expect("a certificate");
        let fake = FakeCluster::builder().listener(SecurityProtocol::Ssl).tls(tls).start().await.expect("ports");
        let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
        let mut open = connect(&fake, &old.0).await.expect("it is trusted");

        let change = json!({"swap_certificate": {"certificate": new.0, "key": new.1}});
        assert_eq!(ask(&address, "POST", "/cluster", &change.to_string()).await, (200, json!({})));
        assert!(connect(&fake, &new.0).await.is_ok() && connect(&fake, &old.0).await.is_err());

        let swap = Operation::SwapCertificate { certificate: last.0.clone(), key: last.1.as_str().into() };
        let words = last.1.lines().nth(1).expect("a line of the key").to_owned();
        let change = json!({"swap_certificate": {"certificate": last.0, "key": last.1}});
        let rule = json!({"when": {"apis": ["Metadata"]}, "do": {"change_cluster": change}});
        assert_eq!(ask(&address, "POST", "/rules", &rule.to_string()).await.0, 201);
        let (_, shown) = ask(&address, "GET", "/rules", "").await;
        assert!(!shown.to_string().contains(&words) && !format!("{swap:?}").contains(&words), "{shown}");
        let metadata = krafka_protocol::MetadataRequest::default();
        let frame = encode_request(&metadata, 12, 1, None).expect("a legal request").to_bytes();
        open.write_all(&frame).await.expect("an open connection stays");
        open.read_i32().await.expect("it is answered");
        assert!(connect(&fake, &last.0).await.is_ok() && connect(&fake, &new.0).await.is_err());

        let back = Operation::SwapCertificate { certificate: old.0.clone(), key: old.1.as_str().into() };
        fake.change(&back).expect("a certificate that fits");
        assert!(connect(&fake, &old.0).await.is_ok());
    }

    /// A key that is not the certificate's, what is no PEM, and a cluster without TLS.
    #[tokio::test]
    async fn certificate_that_cannot_be_used_is_refused() {
        let [one, other] = [certificate(), certificate()];
        let tls = ServerTls::from_pem(one.0.as_bytes(), one.1.as_bytes()).expect("a certificate");
        let fake = FakeCluster::builder().listener(SecurityProtocol::Ssl).tls(tls).start().await.expect("ports");
        let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
        for (certificate, key, reason) in [
            (&*one.0, &*other.1, "the certificate and its key cannot be used"),
            ("nothing", &*one.1, "the certificate: there is none in the PEM"),
            (&*one.0, "nothing", "the key cannot be used"),
        ] {
            let change = json!({"swap_certificate": {"certificate": certificate, "key": key}});
            let rule = json!({"when": {"apis": ["Metadata"]}, "do": {"change_cluster": change.clone()}});
            for (path, body, status) in [("/cluster", change, 409), ("/rules", rule, 400)] {
                let (told, answer) = ask(&address, "POST", path, &body.to_string()).await;
                let error = answer["error"].as_str().unwrap_or_default();
                assert!(told == status && error.starts_with(reason), "{told} {answer}");
            }
        }
        assert!(connect(&fake, &one.0).await.is_ok(), "nothing changed");

        let plain = FakeCluster::builder().start_on_pipes();
        let swap = Operation::SwapCertificate { certificate: one.0, key: one.1.into() };
        assert_eq!(plain.change(&swap), Err("no listener of the cluster speaks TLS".to_owned()));
    }
}
