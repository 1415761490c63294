//! What TLS is made of, as users have it: keys on one line, keys that are encrypted in old ways, a broker's own
//! certificate among the roots, no roots at all.

use krafka::{Kafka, KrafkaError, Tls};
use rcgen::{BasicConstraints, CertificateParams, IsCa};

use super::assert_says;
use super::tls::{Authority, Certified, accepted, host, key, refused, trusting};

/// The same key three times, encrypted by openssl with the password "swordfish": by PBES1 of PKCS #12 and of PKCS #5
/// (`-v1`), and in the form of before PKCS #8.
const OLD: [&str; 3] = [
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIGxMBwGCiqGSIb3DQEMAQMwDgQINdJXDiyJfHsCAggABIGQuCyqR7+KHeyi0wk5\n\
/XRrre+4aLUYjquJm5VoFZv8RUf0zq2lVnKwIdTa+0MRkj2anSX8uRRVl+hbYUMK\n\
eLGxeQVgnvJX88F1W4mzGcoxLjo9MJpnP3gSYOIYILoryEFNxFtR5WtI8lv/JpaF\n\
7LBPfFnzqdTuIKp9gNzebcDb/ij7DDCwA6JD9Avh9a5FXTDG\n\
-----END ENCRYPTED PRIVATE KEY-----",
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIGwMBsGCSqGSIb3DQEFAzAOBAiMju8zsvisswICCAAEgZAq3LqEi50IrWM+COCW\n\
ZuXWT1jB4rBsFD2TR1/4Osu008gUHvRK3+jYIFloKLGNhtR+2+cnnzYX53dgRWsN\n\
fjusrAfQKs7XPW5nIg0jYkqrgmBkg4nPJE7QMz5t6lUWvZ9BdHTOhmJa4BMuysXT\n\
VZ1GSRzw1YPrIWy7ZlefUcMfcL9joCKL5XzFUF1nRD9pxiA=\n\
-----END ENCRYPTED PRIVATE KEY-----",
    "-----BEGIN EC PRIVATE KEY-----\n\
Proc-Type: 4,ENCRYPTED\n\
DEK-Info: AES-128-CBC,05F38E30C63CFB58F366095F25A175B1\n\n\
UFet2qLbKNSHtAgOY1j56aGvZ/zzSf+1SM4AO+gCINST6XGCdpIWJbEpJVAsw2pz\n\
EYIB2w0EWQx0dObvfn/A799HhEIBJnwJl7ntWO30sldt5Gv6MhKx4L7wg+UOnn72\n\
JSpXxl7mD7+mlln7+aQGEEj0vQyyCsVq4YZadoqnfv0=\n\
-----END EC PRIVATE KEY-----",
];

#[tokio::test(start_paused = true)]
async fn a_key_that_is_encrypted_in_an_old_way_is_told_how_to_convert_it() {
    let authority = Authority::new();
    let chain = authority.issue("client").chain;

    for key in OLD {
        let tls = trusting(&authority).identity_pem(&chain, key);
        for tls in [tls.clone(), tls.key_password("swordfish")] {
            let error = Kafka::builder("kafka:9092").tls(tls).connect().await.expect_err("it is not read");
            assert_says(&error, &["encrypted in a form that is not read", "openssl pkcs8 -topk8 -v2 aes256"]);
        }
    }
}

/// KIP-651: keys and certificates in properties are on one line, with blanks or nothing where lines ended.
#[tokio::test(start_paused = true)]
async fn pem_on_one_line_is_read() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = authority.issue(&host()).server(Some(&clients));
    let client = clients.issue("client");
    let key = client.key.serialize_pem();

    for joint in [" ", "", "\r\n", "\\n"] {
        let join = |pem: &str| pem.replace("\r\n", "\n").replace('\n', joint);
        let tls = Tls::new().roots_pem(join(&authority.pem)).identity_pem(join(&client.chain), join(&key));
        accepted(tls, server.clone()).await;
    }
    let joined = |pem: &str| pem.lines().collect::<Vec<_>>().join(" \\\n  ");
    let text = format!(
        "bootstrap.servers=a:1\nsecurity.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates={}\n\
         ssl.keystore.type=PEM\nssl.keystore.certificate.chain={}\nssl.keystore.key={}\n",
        joined(&authority.pem),
        joined(&client.chain),
        joined(&key)
    );
    let builder = Kafka::from_properties(&text).expect("good properties");
    let error =
        builder.bootstrap_timeout(std::time::Duration::from_millis(1)).connect().await.expect_err("nobody is a");
    assert!(error.is_retriable(), "the key and the certificates are read: {error:?}");
}

/// What `openssl req -x509` makes: a certificate that has signed itself and says that it is an issuer's.
fn own(host: &str, change: impl FnOnce(&mut CertificateParams)) -> Certified {
    let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a host name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let key = key();
    let certificate = params.self_signed(&key).expect("a certificate");
    Certified { chain: certificate.pem(), key, der: certificate.der().clone() }
}

/// TL-02: as with Java. Everything but its issuer is judged as with any other.
#[tokio::test(start_paused = true)]
async fn a_brokers_own_certificate_may_be_among_the_roots() {
    let broker = own(&host(), |_| {});
    let trusting = |broker: &Certified| Tls::new().roots_pem(&broker.chain);
    accepted(trusting(&broker), broker.server(None)).await;

    let error = refused(trusting(&own(&host(), |_| {})), broker.server(None)).await;
    assert_says(&error, &["certificate of an issuer", "openssl req -x509", "Tls::roots_file"]);

    let other = own("elsewhere.example", |_| {});
    let error = refused(trusting(&other), other.server(None)).await;
    assert_says(&error, &["it is for", &host(), "advertised.listeners"]);
    accepted(trusting(&other).accept_any_name(), other.server(None)).await;
    accepted(trusting(&other).server_name("elsewhere.example"), other.server(None)).await;

    // One that somebody else has issued, who is not trusted.
    let authority = Authority::new();
    let issued = authority.issue(&host());
    accepted(trusting(&issued), issued.server(None)).await;
    let late = authority.issue_with(&host(), key(), |params| params.not_after = rcgen::date_time_ymd(2024, 2, 29));
    let error = refused(trusting(&late), late.server(None)).await;
    assert_says(&error, &["it expired on 2024-02-29"]);
    let error = refused(trusting(&issued), authority.issue(&host()).server(None)).await;
    assert_says(&error, &["issuer is not trusted"]);

    let expired = own(&host(), |params| params.not_after = rcgen::date_time_ymd(2024, 2, 29));
    let error = refused(trusting(&expired).accept_any_name(), expired.server(None)).await;
    assert_says(&error, &["it expired on 2024-02-29"]);
}

/// TL-01.
#[tokio::test(start_paused = true)]
async fn names_are_told_as_they_are_read() {
    let authority = Authority::new();
    let error = refused(trusting(&authority), authority.issue("elsewhere.example").server(None)).await;
    assert_says(&error, &["it is for elsewhere.example, and not for"]);

    let nameless = authority.issue_with("x", key(), |params| params.subject_alt_names.clear());
    let error = refused(trusting(&authority), nameless.server(None)).await;
    assert_says(&error, &["it is for no name", "common name does not count", "subjectAltName"]);

    let client_only = authority.issue_with(&host(), key(), |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    });
    let error = refused(trusting(&authority), client_only.server(None)).await;
    assert_says(&error, &["not one for servers", "serverAuth"]);
}

/// A Java client's file without a truststore trusts a list of issuers that everybody knows.
#[cfg(feature = "webpki-roots")]
#[tokio::test(start_paused = true)]
async fn without_a_truststore_the_issuers_that_everybody_knows_are_trusted() {
    let error = refused(Tls::new(), Authority::new().issue(&host()).server(None)).await;
    assert_says(&error, &["issuer is not trusted"]);

    let text = "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n\
                sasl.jaas.config=x.PlainLoginModule required username=\"alice\" password=\"x\";\n";
    let builder = Kafka::from_properties(text).expect("good properties");
    let error =
        builder.bootstrap_timeout(std::time::Duration::from_millis(1)).connect().await.expect_err("nobody is a");
    assert!(error.is_retriable(), "the settings are good: {error:?}");
}

/// A configuration that is brought along has settings of its own: ours beside it would be passed over.
#[tokio::test(start_paused = true)]
async fn setters_on_a_configuration_of_rustls_are_refused() {
    let config =
        rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has versions")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
    let tls = || Tls::from(config.clone());

    for (setter, tls) in [
        ("roots_file", tls().roots_file("/ca.pem")),
        ("roots_pem", tls().roots_pem("x").accept_any_name()),
        ("identity_files", tls().identity_files("/a", "/b")),
        ("identity_pem", tls().identity_pem("a", "b")),
        ("accept_any_name", tls().accept_any_name()),
        ("key_password", tls().key_password("hunter2")),
    ] {
        let error = Kafka::builder("kafka:9092").tls(tls).connect().await.expect_err("it would be passed over");
        assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
        assert_says(&error, &[setter, "rustls::ClientConfig"]);
    }
}
