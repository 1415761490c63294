//! Tests of one connection's way through SASL.

use super::*;
use crate::rng::Rng;

const RIGHT: &[u8] = b"\0alice\0secret";

#[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
fn some_time() -> Instant {
    Instant::now()
}

fn logins(max_reauth: Option<Duration>) -> Logins {
    let mut logins = Logins { max_reauth, chance: Rng::stream(0, "sasl"), ..Logins::default() };
    logins.plain.insert("alice".into(), "secret".into());
    logins.plain.insert("bob".into(), "secret".into());
    logins.mechanisms = vec![SaslMechanism::Plain, SaslMechanism::OAuthBearer];
    logins
}

fn shake(session: &mut Session, mechanism: SaslMechanism, now: Instant) -> Result<(), ErrorCode> {
    session.handshake(mechanism.name(), 1, &[SaslMechanism::Plain, SaslMechanism::OAuthBearer], now)
}

#[test]
fn every_state_lets_in_what_kafka_lets_in() {
    use Entry::{Closed, Granted, Refused};
    let now = some_time();
    let keys = [ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate, ApiKey::Metadata];
    let mut authenticating = Session::Greeting;
    shake(&mut authenticating, SaslMechanism::Plain, now).expect("it is enabled");
    let mut done = authenticating.clone();
    done.authenticate(RIGHT, &mut logins(None), now, 0).expect("the password is right");
    let mut ended = authenticating.clone();
    ended.authenticate(RIGHT, &mut logins(Some(Duration::ZERO)), now, 0).expect("the password is right");
    let table = [
        (Session::Open, [Granted, Granted, Granted, Granted]),
        (Session::Greeting, [Granted, Granted, Closed, Closed]),
        (Session::Introduced, [Closed, Granted, Closed, Closed]),
        (authenticating, [Refused, Refused, Granted, Refused]),
        (done, [Granted, Granted, Granted, Granted]),
        (ended, [Closed, Granted, Closed, Closed]),
    ];

    for (session, entries) in table {
        let later = now + Duration::from_millis(1);
        assert_eq!(keys.map(|key| session.entry(key, later)), entries, "{session:?}");
    }
}

#[test]
fn handshake_knows_what_is_enabled_and_happens_once() {
    let now = some_time();
    let mut session = Session::Greeting;
    session.introduced();

    let refused = Err(ErrorCode::UNSUPPORTED_SASL_MECHANISM);
    assert_eq!(shake(&mut session, SaslMechanism::ScramSha256, now), refused);
    assert_eq!(shake(&mut session, SaslMechanism::Plain, now), Ok(()));
    assert_eq!(shake(&mut session, SaslMechanism::Plain, now), Err(ErrorCode::ILLEGAL_SASL_STATE));
    assert_eq!(shake(&mut Session::Open, SaslMechanism::Plain, now), Err(ErrorCode::ILLEGAL_SASL_STATE));
}

#[test]
fn logins_are_renewed_by_the_same_and_not_twice_in_a_second() {
    let now = some_time();
    let mut logins = logins(Some(Duration::from_secs(10)));
    let mut session = Session::Greeting;
    shake(&mut session, SaslMechanism::Plain, now).expect("it is enabled");
    let step = session.authenticate(RIGHT, &mut logins, now, 0).expect("the password is right");
    assert_eq!(step.lifetime_ms, 10_000);

    shake(&mut session, SaslMechanism::Plain, now).expect("a login with an end is renewed");
    let mut by_bob = session.clone();
    session.authenticate(RIGHT, &mut logins, now, 0).expect("it is alice again");

    let refused = Err(ErrorCode::ILLEGAL_SASL_STATE);
    assert_eq!(shake(&mut session, SaslMechanism::Plain, now + Duration::from_millis(999)), refused);
    assert_eq!(shake(&mut session, SaslMechanism::Plain, now + AGAIN_AFTER), Ok(()));
    let words = "Cannot change principals during re-authentication from User.alice: User.bob";
    assert_eq!(by_bob.authenticate(b"\0bob\0secret", &mut logins, now, 0), Err(words.to_owned()));
}

#[test]
fn lifetimes_are_the_shorter_of_two() {
    let login = |ends_ms| Login { ends_ms, ..Login::new(Principal::anonymous(), SaslMechanism::Plain) };
    let second = Duration::from_secs(1);

    assert_eq!(lifetime(&login(None), None, 0), None);
    assert_eq!(lifetime(&login(None), Some(second), 0), Some(second));
    assert_eq!(lifetime(&login(Some(1500)), None, 500), Some(second));
    assert_eq!(lifetime(&login(Some(1500)), Some(2 * second), 500), Some(second));
    assert_eq!(lifetime(&login(Some(1500)), Some(second / 2), 500), Some(second / 2));
    assert_eq!(lifetime(&login(Some(1500)), None, 5000), Some(Duration::ZERO));
}
