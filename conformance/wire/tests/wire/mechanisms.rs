//! SCRAM and OAUTHBEARER on the wire, the credentials that users have, and the delay after a login that failed.

use std::time::{Duration, SystemTime};

use krafka_fake_broker::KafkaVersion;
use krafka_fake_broker::SecurityProtocol::SaslPlaintext;
use krafka_protocol::api::alter_user_scram_credentials::{
    AlterUserScramCredentialsRequest, ScramCredentialDeletion, ScramCredentialUpsertion,
};
use krafka_protocol::api::describe_user_scram_credentials::{DescribeUserScramCredentialsRequest, UserName};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::sasl_authenticate::SaslAuthenticateRequest;
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::logins::{Hash, bearer, claim, handshake, headed, plain, prove, prove_on, scram, token, unsecured};
use crate::secured::{Secured, run};
use crate::target::Wire;

const FAILED: ErrorCode = ErrorCode::SASL_AUTHENTICATION_FAILED;

fn metadata() -> MetadataRequest {
    MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }
}

fn seconds_from_now(seconds: i64) -> i64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    i64::try_from(now).expect("before the year 292277026596") + seconds
}

fn refused(mechanism: &str) -> String {
    format!("Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}")
}

async fn connect(secured: &Secured) -> Wire {
    secured.connect(SaslPlaintext).await
}

#[test]
fn unsupported_mechanism_is_answered_with_all_that_are() {
    run(async |secured| {
        let mut wire = connect(&secured).await;

        let answer = handshake(&mut wire, "NOPE").await;

        assert_eq!(ErrorCode(answer.error_code), ErrorCode::UNSUPPORTED_SASL_MECHANISM);
        let mut mechanisms = answer.mechanisms;
        mechanisms.sort();
        assert_eq!(mechanisms, ["OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]);
        assert!(wire.is_closed().await);
    });
}

#[test]
fn scram_lets_in_who_knows_the_password() {
    run(async |secured| {
        for hash in [Hash::Sha256, Hash::Sha512] {
            let mut wire = connect(&secured).await;

            let answer = scram(&mut wire, hash, ("alice", "alice-secret"), "").await;

            assert_eq!((answer.error_code, answer.error_message.as_deref()), (0, Some("")));
            assert_eq!(answer.session_lifetime_ms, 0);
            assert!(!wire.call(metadata(), 12).await.brokers.is_empty());
        }
    });
}

#[test]
fn scram_refuses_everybody_else() {
    run(async |secured| {
        for (hash, user) in [(Hash::Sha256, "alice"), (Hash::Sha512, "alice"), (Hash::Sha256, "nobody")] {
            let mut wire = connect(&secured).await;

            let answer = scram(&mut wire, hash, (user, "guess"), "").await;

            assert_eq!(ErrorCode(answer.error_code), FAILED);
            assert_eq!(answer.error_message, Some(refused(hash.mechanism()).into()));
            assert!(wire.is_closed().await);
        }
    });
}

#[test]
fn scram_messages_are_read_to_the_letter() {
    run(async |secured| {
        for first in [
            "",
            "nonsense",
            "y,,n=alice,r=abc",
            "n,,n=alice",
            "n,,n=,r=abc",
            "n,,n=alice,r=",
            "n,a=,n=alice,r=abc",
            "n,,m=,n=alice,r=abc",
            "n,,n=alice,r=abc,future=",
            "n,,n=alice,r=abc,f1=yes",
            "n,,n=alice,r=abc,future=\u{e9}",
        ] {
            let mut wire = connect(&secured).await;
            let answer = claim(&mut wire, Hash::Sha256, first).await;
            assert_eq!(ErrorCode(answer.error_code), FAILED, "{first}");
            assert_eq!(answer.error_message, Some(refused("SCRAM-SHA-256").into()), "{first}");
        }

        let mut wire = connect(&secured).await;
        let answer = claim(&mut wire, Hash::Sha256, "n,a=bob,n=alice,r=abc").await;
        let words = "Authentication failed: Client requested an authorization id that is different from username";
        assert_eq!((ErrorCode(answer.error_code), answer.error_message.as_deref()), (FAILED, Some(words)));

        let mut wire = connect(&secured).await;
        let challenge = claim(&mut wire, Hash::Sha256, "n,a=alice,n=alice,r=abc,future=yes").await;
        assert_eq!((challenge.error_code, challenge.session_lifetime_ms), (0, 0));
        let challenge = String::from_utf8(challenge.auth_bytes.to_vec()).expect("text");
        assert!(challenge.starts_with("r=abc") && challenge.contains(",i=4096"), "{challenge}");
        let other_nonce = challenge.replacen("r=abc", "r=abd", 1);
        let (proof, _) = prove(Hash::Sha256, "n=alice,r=abc,future=yes", &other_nonce, "alice-secret");
        let answer = token(&mut wire, proof).await;
        assert_eq!(answer.error_message, Some(refused("SCRAM-SHA-256").into()));
    });
}

/// Kafka puts together what it has understood, and takes the proof for that: not for what is reserved at the front of
/// the first message, nor for the extensions of the last. What the last says of its channel it takes, whatever it is.
#[test]
fn scram_proves_what_kafka_has_understood() {
    run(async |secured| {
        for (front, channel, end, is_let_in) in [
            ("", "biws", "", true),
            ("m=new,", "biws", "", true),
            ("", "eSws", "", true),
            ("", "", "", true),
            ("", "biws=", "", false),
            ("", "biws", ",future=yes", true),
            ("", "biws", ",f1=yes", false),
        ] {
            let mut wire = connect(&secured).await;
            let challenge = claim(&mut wire, Hash::Sha256, &format!("n,,{front}n=alice,r=abc")).await;
            let challenge = String::from_utf8(challenge.auth_bytes.to_vec()).expect("text");
            let (proof, _) = prove_on(channel, Hash::Sha256, "n=alice,r=abc", &challenge, "alice-secret");

            let answer = token(&mut wire, proof.replace(",p=", &format!("{end},p="))).await;

            let expected = if is_let_in { ErrorCode::NONE } else { FAILED };
            assert_eq!(ErrorCode(answer.error_code), expected, "{front} {channel} {end}");
        }
    });
}

/// Such a user can have a credential, and nobody can log in with it: names in the messages of SCRAM are ASCII.
#[test]
fn scram_knows_no_names_beyond_ascii() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let user = Str::from(format!("m\u{fc}ller-{}", secured.target.fresh("user")));
        let upsertions = vec![upsertion(&user, Hash::Sha256, "secret", 4096)];
        let request = AlterUserScramCredentialsRequest { deletions: vec![], upsertions };
        assert_eq!(admin.call(request, 0).await.results[0].error_code, 0);
        while credentials(&mut admin, &[&user]).await[0].3.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        let answer = scram(&mut connect(&secured).await, Hash::Sha256, (&user, "secret"), "").await;

        assert_eq!(answer.error_message, Some(refused("SCRAM-SHA-256").into()));
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how much time passes is what is asked")]
fn failed_login_is_answered_late() {
    run(async |secured| {
        for is_plain in [true, false] {
            let mut wire = connect(&secured).await;
            let begun = tokio::time::Instant::now();

            let answer = if is_plain {
                plain(&mut wire, "alice", "guess").await
            } else {
                scram(&mut wire, Hash::Sha256, ("nobody", "guess"), "").await
            };

            assert_eq!(ErrorCode(answer.error_code), FAILED);
            assert!(begun.elapsed() >= Duration::from_millis(99), "{:?}", begun.elapsed());
            assert!(wire.is_closed().await);
        }
    });
}

#[test]
fn bearer_tokens_let_in_until_they_end() {
    // Before the cluster starts, since the fake's clock stands from then on while this machine's goes.
    let ends = seconds_from_now(100);
    run(async move |secured| {
        let mut wire = connect(&secured).await;

        let answer = bearer(&mut wire, &unsecured(&format!(r#"{{"sub":"alice","exp":{ends}}}"#))).await;

        assert_eq!((answer.error_code, answer.error_message.as_deref()), (0, Some("")));
        assert!((90_000..=100_000).contains(&answer.session_lifetime_ms), "{}", answer.session_lifetime_ms);
        assert!(!wire.call(metadata(), 12).await.brokers.is_empty());
    });
}

#[test]
fn bad_bearer_tokens_are_refused_when_that_was_acknowledged() {
    run(async |secured| {
        let (past, future) = (seconds_from_now(-100), seconds_from_now(100));
        for bad in [
            unsecured(&format!(r#"{{"sub":"alice","exp":{past}}}"#)),
            unsecured(&format!(r#"{{"exp":{future}}}"#)),
            unsecured(r#"{"sub":"alice"}"#),
            unsecured(&format!(r#"{{"sub":"alice","exp":{future},"scope":5}}"#)),
            unsecured(&format!(r#"{{"sub":"","exp":{future}}}"#)),
            format!("{}signature", unsecured(&format!(r#"{{"sub":"alice","exp":{future}}}"#))),
            "nonsense".to_owned(),
        ] {
            let mut wire = connect(&secured).await;

            let answer = bearer(&mut wire, &bad).await;
            assert_eq!((answer.error_code, &answer.auth_bytes[..]), (0, &b"{\"status\":\"invalid_token\"}"[..]));
            let answer = token(&mut wire, "\u{1}").await;

            assert_eq!(ErrorCode(answer.error_code), FAILED);
            assert_eq!(answer.error_message.as_deref(), Some("{\"status\":\"invalid_token\"}"));
            assert!(wire.is_closed().await);
        }
        let mut wire = connect(&secured).await;
        handshake(&mut wire, "OAUTHBEARER").await;
        let answer = token(&mut wire, "nonsense").await;
        assert_eq!(answer.error_message, Some(refused("OAUTHBEARER").into()));
    });
}

/// Kafka is not prepared for such tokens, and closes the connection: without an algorithm, or of another scheme.
#[test]
fn bearer_tokens_that_kafka_trips_over_are_not_answered() {
    run(async |secured| {
        let future = seconds_from_now(100);
        let good = unsecured(&format!(r#"{{"sub":"alice","exp":{future}}}"#));
        for bad in [
            format!("Bearer {}", headed("{}", &format!(r#"{{"sub":"alice","exp":{future}}}"#))),
            format!("Basic {good}"),
        ] {
            let mut wire = connect(&secured).await;
            handshake(&mut wire, "OAUTHBEARER").await;
            let auth_bytes = Bytes::from(format!("n,,\u{1}auth={bad}\u{1}\u{1}").into_bytes());

            wire.send(SaslAuthenticateRequest { auth_bytes }, 2).await;

            assert!(wire.is_closed().await, "{bad}");
        }
    });
}

/// Nor is it for an end that it cannot count the nanoseconds to. Kafka 3.9 counts on from the least number then.
#[test]
fn bearer_tokens_with_an_end_beyond_the_clock_are_not_answered() {
    run(async |secured| {
        secured.target.since(KafkaVersion::V4_0, "an end that is too far away").await;
        let mut wire = connect(&secured).await;
        handshake(&mut wire, "OAUTHBEARER").await;
        let far = unsecured(r#"{"sub":"alice","exp":100000000000}"#);
        let auth_bytes = Bytes::from(format!("n,,\u{1}auth=Bearer {far}\u{1}\u{1}").into_bytes());

        wire.send(SaslAuthenticateRequest { auth_bytes }, 2).await;

        assert!(wire.is_closed().await);
    });
}

/// The last `auth` counts, and extensions must have something in them.
#[test]
fn bearer_messages_are_read_to_the_letter() {
    run(async |secured| {
        let good = unsecured(&format!(r#"{{"sub":"alice","exp":{}}}"#, seconds_from_now(100)));
        let bearer = format!("auth=Bearer {good}");
        for (pairs, is_let_in) in [
            (format!("{bearer}\u{1}scope=x y"), true),
            (format!("auth=x\u{1}{bearer}"), true),
            (format!("{bearer}\u{1}auth=x"), false),
            (format!("{bearer}\u{1}scope="), false),
            (format!("{bearer}\u{1}scope=\u{e9}"), false),
        ] {
            let mut wire = connect(&secured).await;
            handshake(&mut wire, "OAUTHBEARER").await;

            let answer = token(&mut wire, format!("n,,\u{1}{pairs}\u{1}\u{1}")).await;

            let expected = if is_let_in { None } else { Some(refused("OAUTHBEARER").into()) };
            assert_eq!(answer.error_message.filter(|words| !words.is_empty()), expected, "{pairs}");
        }
    });
}

fn upsertion(user: &Str, hash: Hash, password: &str, iterations: i32) -> ScramCredentialUpsertion {
    let salt = Bytes::from_static(b"salt of this test");
    let rounds = iterations.unsigned_abs();
    ScramCredentialUpsertion {
        name: user.clone(),
        mechanism: if matches!(hash, Hash::Sha256) { 1 } else { 2 },
        iterations,
        salted_password: Bytes::from(hash.salted(password, &salt, rounds)),
        salt,
    }
}

/// What users have: mechanism and iterations of each credential, or the error.
async fn credentials(wire: &mut Wire, users: &[&Str]) -> Vec<(Str, ErrorCode, Option<Str>, Vec<(i8, i32)>)> {
    let users = users.iter().map(|name| UserName { name: (*name).clone() }).collect();
    let answer = wire.call(DescribeUserScramCredentialsRequest { users: Some(users) }, 0).await;
    assert_eq!((answer.error_code, answer.error_message.as_deref()), (0, Some("")));
    let results = answer.results.into_iter().map(|result| {
        let mut infos: Vec<_> = result.credential_infos.iter().map(|info| (info.mechanism, info.iterations)).collect();
        infos.sort();
        (result.user, ErrorCode(result.error_code), result.error_message, infos)
    });
    results.collect()
}

#[test]
fn credentials_act_on_logins() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let user = secured.target.fresh("user");
        let upsertions =
            vec![upsertion(&user, Hash::Sha256, "secret", 4096), upsertion(&user, Hash::Sha512, "other", 5000)];
        for upsertion in upsertions {
            let request = AlterUserScramCredentialsRequest { deletions: vec![], upsertions: vec![upsertion] };
            let results = admin.call(request, 0).await.results;
            assert_eq!((&results[0].user, results[0].error_code, &results[0].error_message), (&user, 0, &None));
        }
        while credentials(&mut admin, &[&user]).await[0].3.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let found = credentials(&mut admin, &[&user]).await;
        assert_eq!(found, [(user.clone(), ErrorCode::NONE, Some(Str::default()), vec![(1, 4096), (2, 5000)])]);

        let log_in = async |hash: Hash, password: &str| {
            scram(&mut connect(&secured).await, hash, (&user, password), "").await.error_code
        };
        assert_eq!(log_in(Hash::Sha256, "secret").await, 0);
        assert_eq!(log_in(Hash::Sha512, "other").await, 0);
        assert_eq!(ErrorCode(log_in(Hash::Sha512, "secret").await), FAILED);

        let deletions = vec![ScramCredentialDeletion { name: user.clone(), mechanism: 1 }];
        let request = AlterUserScramCredentialsRequest { deletions, upsertions: vec![] };
        assert_eq!(admin.call(request, 0).await.results[0].error_code, 0);
        while credentials(&mut admin, &[&user]).await[0].3.len() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(ErrorCode(log_in(Hash::Sha256, "secret").await), FAILED);
    });
}

#[test]
fn credentials_that_cannot_be_are_refused() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let user = secured.target.fresh("user");
        let missing = |mechanism| ScramCredentialDeletion { name: user.clone(), mechanism };
        let unknown = ScramCredentialUpsertion { mechanism: 3, ..upsertion(&user, Hash::Sha256, "x", 4096) };
        let twice = upsertion(&user, Hash::Sha256, "x", 4096);
        let other = upsertion(&user, Hash::Sha512, "x", 4096);
        let nobody = upsertion(&Str::default(), Hash::Sha256, "x", 4096);
        let low = upsertion(&user, Hash::Sha256, "x", 4095);
        let high = ScramCredentialUpsertion { iterations: 16_385, ..low.clone() };
        let empty = ScramCredentialUpsertion { salted_password: Bytes::new(), ..twice.clone() };
        let absent = (ErrorCode::RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist");
        let strange = (ErrorCode::UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism");
        let bad = |words| (ErrorCode::UNACCEPTABLE_CREDENTIAL, words);
        let again = (ErrorCode::DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request");
        let table = [
            (vec![missing(1)], vec![], absent),
            (vec![missing(3)], vec![], strange),
            (vec![], vec![unknown], strange),
            (vec![], vec![nobody], bad("Username must not be empty")),
            (vec![], vec![low], bad("Too few iterations")),
            (vec![], vec![high], bad("Too many iterations")),
            // Kafka trips over it, and has no words for that.
            (vec![], vec![empty], (ErrorCode::UNKNOWN_SERVER_ERROR, "")),
            (vec![], vec![twice.clone(), twice.clone()], again),
            (vec![missing(1)], vec![twice.clone()], absent),
            (vec![], vec![twice, other], again),
        ];
        for (deletions, upsertions, told) in table {
            let request = AlterUserScramCredentialsRequest { deletions, upsertions };
            let results = admin.call(request, 0).await.results;
            assert_eq!(results.len(), 1);
            let words = results[0].error_message.as_deref().unwrap_or_default();
            assert_eq!((ErrorCode(results[0].error_code), words), told);
        }
        let words = format!("Attempt to describe a user credential that does not exist: {user}");
        let told = credentials(&mut admin, &[&user]).await;
        assert_eq!(told, [(user.clone(), ErrorCode::RESOURCE_NOT_FOUND, Some(words.into()), vec![])]);
        let alice = Str::from("alice");
        let mut told = credentials(&mut admin, &[&alice, &user, &user]).await;
        told.sort_by(|a, b| a.0.cmp(&b.0));
        let words = format!("Cannot describe SCRAM credentials for the same user twice in a single request: {user}");
        let of_alice = (alice, ErrorCode::NONE, Some(Str::default()), vec![(1, 4096), (2, 4096)]);
        assert_eq!(told, [of_alice, (user.clone(), ErrorCode::DUPLICATE_RESOURCE, Some(words.into()), vec![])]);
        let all = admin.call(DescribeUserScramCredentialsRequest { users: None }, 0).await.results;
        assert!(["admin", "alice", "bob"].iter().all(|name| all.iter().any(|result| *result.user == **name)));

        let mut bob = secured.login("bob").await;
        let users = Some(vec![UserName { name: user.clone() }]);
        let told = bob.call(DescribeUserScramCredentialsRequest { users }, 0).await;
        assert_eq!(ErrorCode(told.error_code), ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
        assert_eq!((told.error_message, told.results.len(), &*told.results[0].user), (None, 1, ""));
        let request = AlterUserScramCredentialsRequest { deletions: vec![missing(1)], upsertions: vec![] };
        let told = ErrorCode(bob.call(request, 0).await.results[0].error_code);
        assert_eq!(told, ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
    });
}
