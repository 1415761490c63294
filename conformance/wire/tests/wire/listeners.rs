//! Listeners: each tells its own addresses, and TLS ones know clients by their certificates.

use std::sync::Arc;

use krafka_fake_broker::{ClientAuth, FakeCluster, SecurityProtocol, ServerTls};
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::{ApiVersionsRequest, DescribeClusterRequest, Str};
use tokio_rustls::TlsConnector;

use crate::logins;
use crate::secured::{Authority, Certificates, localhost, run};
use crate::target::{Wire, on_fake};

const EVERY: [SecurityProtocol; 4] =
    [SecurityProtocol::Plaintext, SecurityProtocol::SaslPlaintext, SecurityProtocol::Ssl, SecurityProtocol::SaslSsl];

fn metadata() -> MetadataRequest {
    MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }
}

#[test]
fn each_listener_tells_its_own_addresses() {
    run(async |secured| {
        for listener in EVERY {
            let mut wire = if listener.is_tls() {
                secured.connect_tls(listener, false).await
            } else {
                secured.connect(listener).await
            };
            if listener.is_sasl() {
                assert_eq!(logins::plain(&mut wire, "admin", "admin-secret").await.error_code, 0);
            }
            let own = secured.address(listener).1;

            let brokers = wire.call(metadata(), 12).await.brokers;
            let cluster = wire.call(DescribeClusterRequest { endpoint_type: 1, ..Default::default() }, 1).await;
            let request = FindCoordinatorRequest {
                key_type: 0,
                coordinator_keys: vec![Str::from("group")],
                ..FindCoordinatorRequest::default()
            };
            let coordinator = loop {
                let found = wire.call(request.clone(), 4).await.coordinators.remove(0);
                if found.error_code == 0 {
                    break found;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            };

            assert_eq!(brokers[0].port, i32::from(own), "{listener}");
            assert_eq!(cluster.brokers[0].port, i32::from(own), "{listener}");
            assert_eq!(coordinator.port, i32::from(own), "{listener}");
        }
    });
}

#[test]
fn plain_client_at_a_tls_port_is_not_heard() {
    run(async |secured| {
        let mut wire = secured.connect(SecurityProtocol::Ssl).await;

        wire.send(ApiVersionsRequest::default(), 0).await;

        // An alert of TLS may come first.
        while wire.byte().await.is_some() {}
    });
}

#[test]
fn tls_client_at_a_plain_port_is_not_heard() {
    run(async |secured| {
        let connector = TlsConnector::from(Arc::new(secured.certificates.config(false)));

        let refused = connector.connect(localhost(), secured.dial(SecurityProtocol::Plaintext).await).await;

        assert!(refused.is_err());
    });
}

#[test]
fn certificate_of_a_stranger_is_refused() {
    run(async |secured| {
        let (client, client_key) = Authority::new("somebody else").sign("client");
        let stranger = Certificates { authority: secured.certificates.authority.clone(), client, client_key };
        let connector = TlsConnector::from(Arc::new(stranger.config(true)));

        // In TLS 1.3 a client believes that all is well before the other side has looked at its certificate.
        let stream = connector.connect(localhost(), secured.dial(SecurityProtocol::Ssl).await).await;
        let Ok(stream) = stream else { return };
        let mut wire = Wire::over(Box::new(stream));
        assert!(wire.try_send(ApiVersionsRequest::default(), 0).await.is_err() || wire.is_closed().await);
    });
}

/// Fake only: `ssl.client.auth` is set when a broker starts.
#[test]
fn required_certificates_are_required() {
    let (certificates, _) = Certificates::made_up();
    let authority = Authority::new("nodes");
    let (node, key) = authority.sign("localhost");
    let tls = ServerTls::from_pem(node.as_bytes(), key.as_bytes()).expect("a certificate");
    let tls = tls.client_auth(certificates.authority.as_bytes(), ClientAuth::Required).expect("an authority");
    let certificates = Certificates { authority: authority.pem, ..certificates };

    on_fake(FakeCluster::builder().listener(SecurityProtocol::Ssl).tls(tls), async |target, fake| {
        let (host, port) = fake.address(1).expect("a node");
        for (shows, is_heard) in [(true, true), (false, false)] {
            let connector = TlsConnector::from(Arc::new(certificates.config(shows)));
            let stream = connector.connect(localhost(), target.dial(&host, port).await).await;
            let mut wire = Wire::over(Box::new(stream.expect("the server is fine with TLS 1.3 so far")));
            if wire.try_send(metadata(), 12).await.is_ok() {
                assert_eq!(wire.frame().await.is_some(), is_heard);
            } else {
                assert!(!is_heard);
            }
        }
    });
}

/// Fake only: the certificate is changed through the fake's own handle.
#[test]
fn new_certificate_is_for_new_connections() {
    let old = Authority::new("old");
    let new = Authority::new("new");
    let tls_of = |authority: &Authority| {
        let (node, key) = authority.sign("localhost");
        ServerTls::from_pem(node.as_bytes(), key.as_bytes()).expect("a certificate")
    };
    let trusting = |authority: &Authority| {
        let (client, client_key) = authority.sign("client");
        let certificates = Certificates { authority: authority.pem.clone(), client, client_key };
        TlsConnector::from(Arc::new(certificates.config(false)))
    };

    on_fake(FakeCluster::builder().listener(SecurityProtocol::Ssl).tls(tls_of(&old)), async |target, fake| {
        let (host, port) = fake.address(1).expect("a node");
        let stream = trusting(&old).connect(localhost(), target.dial(&host, port).await).await.expect("it is trusted");
        let mut open = Wire::over(Box::new(stream));

        fake.set_tls(&tls_of(&new)).expect("a certificate that fits");

        assert_eq!(open.call(metadata(), 12).await.brokers.len(), 1);
        assert!(trusting(&old).connect(localhost(), target.dial(&host, port).await).await.is_err());
        assert!(trusting(&new).connect(localhost(), target.dial(&host, port).await).await.is_ok());
    });
}
