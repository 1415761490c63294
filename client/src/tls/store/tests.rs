//! Stores that keytool and openssl made (`client/tests/stores/make`), whole, with wrong passwords, and broken.

use super::*;

macro_rules! store {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/stores/", $name)).as_slice()
    };
}

const PASSWORDS: Passwords<'_> = Passwords { store: "swordfish", key: None };

/// Every store with a key and its chain, in the forms that are in use.
const IDENTITIES: [(&str, &[u8]); 6] = [
    ("keytool, JKS", store!("identity.jks")),
    ("keytool, PKCS #12", store!("identity.p12")),
    ("keytool, PKCS #12, few iterations", store!("identity-few.p12")),
    ("keytool, PKCS #12 of before JDK 17", store!("identity-legacy.p12")),
    ("openssl", store!("identity-openssl.p12")),
    ("openssl -legacy", store!("identity-openssl-legacy.p12")),
];

const TRUSTS: [(&str, &[u8]); 5] = [
    ("keytool, JKS", store!("trust.jks")),
    ("keytool, PKCS #12", store!("trust.p12")),
    ("keytool, PKCS #12 of before JDK 17", store!("trust-legacy.p12")),
    ("openssl -nokeys", store!("trust-openssl.p12")),
    ("openssl -nokeys, neither encrypted nor signed", store!("trust-bare.p12")),
];

fn certificate(pem: &[u8]) -> CertificateDer<'static> {
    crate::tls::pem::certificates(pem).expect("a good text").remove(0)
}

fn ca() -> CertificateDer<'static> {
    certificate(store!("ca.pem"))
}

fn identity(bytes: &[u8], passwords: Passwords<'_>) -> Result<Vec<CertificateDer<'static>>, Fault> {
    Store::read(bytes, passwords)?.into_identity().map(|(chain, _)| chain)
}

fn trusted(bytes: &[u8], password: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    Store::read(bytes, Passwords { store: password, key: None })?.into_trusted()
}

#[test]
fn a_key_comes_with_its_chain() {
    let mut keys = Vec::new();
    for (made_by, bytes) in IDENTITIES {
        let store = Store::read(bytes, PASSWORDS).unwrap_or_else(|fault| panic!("{made_by}: {fault}"));
        assert_eq!(store.keys[0].alias, "client", "{made_by}");
        let (chain, key) = store.into_identity().unwrap_or_else(|fault| panic!("{made_by}: {fault}"));
        assert_eq!(chain, [certificate(store!("client.pem")), ca()], "{made_by}");
        let provider = crate::tls::provider().expect("there is one");
        let key = provider.key_provider.load_private_key(key).expect("a key");
        keys.push(key.public_key().expect("it has one").to_vec());
    }
    keys.dedup();
    assert_eq!(keys.len(), 1, "it is the same key in all of them");
}

#[test]
fn issuers_are_trusted() {
    for (made_by, bytes) in TRUSTS {
        assert_eq!(trusted(bytes, "swordfish").as_deref(), Ok([ca()].as_slice()), "{made_by}");
    }
}

/// Java's truststores need no password, as long as nothing in them is encrypted.
#[test]
fn a_truststore_may_come_without_its_password() {
    assert_eq!(trusted(store!("trust.jks"), ""), Ok(vec![ca()]));
    assert_eq!(trusted(store!("trust-bare.p12"), ""), Ok(vec![ca()]));
    for encrypted in [store!("trust.p12"), store!("trust-legacy.p12"), store!("trust-openssl.p12")] {
        assert_eq!(trusted(encrypted, ""), Err(Fault::NeedsPassword));
    }
}

/// As in Java: who trusts a store with a key in it trusts the key's own certificate.
#[test]
fn the_own_certificate_of_a_key_is_trusted() {
    for (made_by, bytes) in IDENTITIES {
        assert_eq!(trusted(bytes, "swordfish"), Ok(vec![certificate(store!("client.pem"))]), "{made_by}");
    }
}

#[test]
fn a_wrong_password_is_told() {
    for (made_by, bytes) in IDENTITIES.into_iter().chain(TRUSTS.into_iter().take(4)) {
        let wrong = Passwords { store: "hunter2", key: None };
        assert_eq!(Store::read(bytes, wrong).map(drop), Err(Fault::WrongPassword), "{made_by}");
    }
}

#[test]
fn a_key_may_have_a_password_of_its_own() {
    let other = store!("identity-other-key.jks");
    let with = |key| identity(other, Passwords { store: "swordfish", key });

    assert_eq!(with(Some("halibut")).map(|chain| chain.len()), Ok(2));
    assert_eq!(with(None), Err(Fault::WrongKeyPassword));
    assert_eq!(with(Some("hunter2")), Err(Fault::WrongKeyPassword));
    // Who wants no key need not know its password.
    assert_eq!(trusted(other, "swordfish").map(|trusted| trusted.len()), Ok(1));
    for (made_by, bytes) in IDENTITIES {
        let wrong = Passwords { store: "swordfish", key: Some("hunter2") };
        assert_eq!(identity(bytes, wrong), Err(Fault::WrongKeyPassword), "{made_by}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    for empty in [store!("empty.jks"), store!("empty.p12")] {
        assert_eq!(trusted(empty, "swordfish"), Err(Fault::NothingTrusted));
        assert_eq!(identity(empty, PASSWORDS), Err(Fault::NoKey));
    }
    for (made_by, bytes) in TRUSTS {
        assert_eq!(identity(bytes, PASSWORDS), Err(Fault::NoKey), "{made_by}");
    }
    let fault = identity(store!("two-keys.jks"), PASSWORDS).expect_err("there are two");
    let Fault::Keys(mut aliases) = fault else { panic!("{fault}") };
    aliases.sort();
    assert_eq!(aliases, ["client", "second"]);
}

#[test]
fn what_is_no_store_is_told_what_it_is() {
    for (bytes, expected) in [
        (store!("identity.jceks"), Fault::IsJceks),
        (store!("ca.pem"), Fault::IsPem),
        (b"# a comment\n-----BEGIN CERTIFICATE-----", Fault::IsPem),
        (b"", Fault::IsNone),
        (b"hello", Fault::IsNone),
        (b"\xfe\xed\xfe", Fault::IsNone),
        (b"\xfe\xed\xfe\xed", Fault::Broken("JKS")),
        (b"0", Fault::Broken("PKCS #12")),
    ] {
        assert_eq!(Store::read(bytes, PASSWORDS).map(drop), Err(expected));
    }
}

/// No store that is cut short or changed in a place is read, and none makes the reader fall.
#[test]
fn broken_stores_do_no_harm() {
    let few = [
        store!("identity.jks"),
        store!("identity-few.p12"),
        store!("identity-openssl.p12"),
        store!("identity-openssl-legacy.p12"),
        store!("trust.p12"),
    ];
    for whole in few {
        for len in 0..whole.len() {
            Store::read(&whole[..len], PASSWORDS).map(drop).expect_err("it is cut short");
        }
        for at in 0..whole.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut broken = whole.to_vec();
                broken[at] ^= flip;
                // What is not signed may be changed, such as the version of a form.
                let _ = Store::read(&broken, PASSWORDS).map(drop);
            }
        }
    }
}

/// The same behind the signature, where whoever knows the password can put what he likes.
#[test]
fn signed_nonsense_does_no_harm() {
    let all = [
        store!("identity.jks"),
        store!("trust.jks"),
        store!("two-keys.jks"),
        store!("identity-few.p12"),
        store!("identity-bare.p12"),
        store!("trust-bare.p12"),
    ];
    for whole in all {
        for (at, flip) in (0..whole.len()).flat_map(|at| [1, 0x40, 0x80, 0xff].map(|flip| (at, flip))) {
            let mut broken = whole.to_vec();
            broken[at] ^= flip;
            // Nothing is checked without a password.
            let _ = Store::read(&broken, Passwords { store: "", key: Some("swordfish") }).map(drop);
        }
    }
}

/// A file says how often to hash: more than Java takes is not done.
#[test]
fn endless_iterations_are_refused() {
    let whole = store!("identity-few.p12");
    // The last number of the file, `02 01 03`.
    let (front, number) = whole.split_at(whole.len() - 3);
    assert_eq!(number, [2, 1, 3]);
    let mut endless = front.to_vec();
    endless.extend([2, 1, 0]);

    assert_eq!(Store::read(&endless, PASSWORDS).map(drop), Err(Fault::Broken("PKCS #12")));
}

#[test]
fn faults_do_not_show_passwords() {
    for fault in [
        Fault::IsPem,
        Fault::IsJceks,
        Fault::IsNone,
        Fault::Broken("JKS"),
        Fault::WrongPassword,
        Fault::WrongKeyPassword,
        Fault::NeedsPassword,
        Fault::Unread("a key"),
        Fault::NoKey,
        Fault::NoChain("a".to_owned()),
        Fault::Keys(vec!["a".to_owned(), "b".to_owned()]),
        Fault::NothingTrusted,
    ] {
        assert!(!fault.to_string().contains("swordfish") && !fault.to_string().is_empty());
    }
}
