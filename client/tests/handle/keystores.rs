//! Java's key stores, through the whole of TLS: as setters, and as a Java client's file has them.

use std::path::{Path, PathBuf};

use krafka::{Kafka, KrafkaError, Tls};
use rcgen::KeyPair;

use super::assert_says;
use super::files::nobody;
use super::tls::{Authority, Folder, behind_tls, host, world_behind_tls};

fn store(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(name)
}

/// The issuer of the stores.
fn stores() -> Authority {
    let read = |name| std::fs::read_to_string(store(name)).expect("it is among the stores");
    let key = KeyPair::from_pem(&read("ca.key.pem")).expect("a key");
    let mut authority = Authority::named("stores", key);
    authority.pem = read("ca.pem");
    authority
}

async fn works(trust: &str, identity: &str) {
    let authority = stores();
    let (_fake, builder) = behind_tls(authority.issue(&host()).server(Some(&authority)));
    let tls = Tls::new().roots_keystore(store(trust), "swordfish").identity_keystore(store(identity), "swordfish");
    let kafka = builder.tls(tls).connect().await.expect("both sides are trusted");
    kafka.admin().list_topics().await.expect("it is served");
}

#[tokio::test(start_paused = true)]
async fn stores_of_either_form_are_read() {
    works("trust.jks", "identity.jks").await;
    works("trust.p12", "identity.p12").await;
    works("trust-legacy.p12", "identity-legacy.p12").await;
    works("trust-openssl.p12", "identity-openssl.p12").await;
    works("trust-bare.p12", "identity-openssl-legacy.p12").await;
}

/// Whatever type the file names, and also where it names none: as in Java since JDK 9.
#[tokio::test(start_paused = true)]
async fn a_java_clients_file_is_read() {
    let authority = stores();
    for kind in ["", "JKS", "pkcs12"] {
        for form in ["jks", "p12"] {
            let types = if kind.is_empty() {
                String::new()
            } else {
                format!("ssl.truststore.type={kind}\nssl.keystore.type={kind}\n")
            };
            let (fake, environment) = world_behind_tls(authority.issue(&host()).server(Some(&authority)));
            let text = format!(
                "bootstrap.servers={}\nsecurity.protocol=SSL\n{types}ssl.truststore.location={}\n\
                 ssl.truststore.password=swordfish\nssl.keystore.location={}\nssl.keystore.password=swordfish\n\
                 ssl.key.password=swordfish\n",
                fake.bootstrap(),
                store(&format!("trust.{form}")).display(),
                store(&format!("identity.{form}")).display(),
            );
            let kafka = Kafka::from_properties(&text).expect("good properties").environment(environment);
            let kafka = kafka.connect().await.expect("both sides are trusted");
            kafka.admin().list_topics().await.expect("it is served");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_store_is_told_with_its_name() {
    let trusting = |name: &str, password: &str| Tls::new().roots_keystore(store(name), password);
    let showing =
        |name: &str, password: &str| Tls::new().roots_pem(stores().pem).identity_keystore(store(name), password);
    for (tls, words) in [
        (trusting("trust.jks", "hunter2"), ["trust.jks' cannot be opened", "password"]),
        (trusting("trust.p12", ""), ["trust.p12' is encrypted", "ssl.truststore.password"]),
        (trusting("empty.jks", "swordfish"), ["empty.jks' has no certificate", "keytool -importcert"]),
        (trusting("ca.pem", ""), ["ca.pem' is PEM", "roots_file"]),
        (trusting("make", ""), ["make' is no key store", "JKS nor PKCS #12"]),
        (showing("identity.p12", "hunter2"), ["identity.p12' cannot be opened", "password"]),
        (showing("identity-other-key.jks", "swordfish"), ["identity-other-key.jks' can be opened", "ssl.key.password"]),
        (showing("identity.p12", "swordfish").key_password("hunter2"), ["identity.p12' can be opened", "key_password"]),
        (showing("trust.jks", "swordfish"), ["trust.jks' has no private key", "truststore"]),
        (showing("two-keys.jks", "swordfish"), ["two-keys.jks' has 2 private keys", "second"]),
        (showing("identity.jceks", "swordfish"), ["identity.jceks' is a store of type JCEKS", "keytool"]),
        (Tls::new().roots_file(store("trust.jks")), ["trust.jks'", "key store of Java's take roots_keystore"]),
        (Tls::new().roots_file(store("trust.p12")), ["trust.p12'", "ssl.truststore.type"]),
    ] {
        let shown = format!("{tls:?}");
        let error = nobody().tls(tls).connect().await.map(drop).expect_err("the store is wrong");
        assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
        assert_says(&error, &words);
        let text = format!("{error} {error:?} {shown}");
        assert!(!text.contains("hunter2") && !text.contains("swordfish"), "{text}");
    }
    let other = showing("identity-other-key.jks", "swordfish").key_password("halibut");
    let error = nobody().tls(other).connect().await.map(drop).expect_err("nobody is there");
    assert!(error.is_retriable(), "the key is read: {error:?}");
}

/// A store that is renewed under a running client is read again.
#[tokio::test(start_paused = true)]
async fn a_store_that_changes_is_read_again() {
    let (authority, folder) = (stores(), Folder::new("store"));
    let path = folder.write("trust", "");
    std::fs::copy(store("trust.jks"), &path).expect("it is there");
    let (fake, builder) = behind_tls(authority.issue(&host()).server(None));
    let kafka = builder.tls(Tls::new().roots_keystore(&path, "swordfish")).connect().await.expect("it is trusted");

    std::fs::copy(store("identity.p12"), &path).expect("it is there");
    fake.disconnect(1);
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let error = kafka.broker_connection(1).await.map(drop).expect_err("the client's certificate is not the issuer's");

    assert_says(&error, &["issuer is not trusted"]);
}
