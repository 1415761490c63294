//! [`Unsecured`]: tokens that nobody has signed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::jaas::LoginModule;
use crate::auth::{BearerToken, ProvidingToken, TokenProvider};
use crate::environment::{SystemClock, WallClock};
use crate::limits::finite;

/// Writes tokens that nobody has signed, as Java's client does when it is told no issuer. For development: a broker
/// that takes them believes everybody.
pub(super) struct Unsecured {
    subject: String,
    life: Duration,
    extensions: Vec<(String, String)>,
    wall_clock: Arc<dyn WallClock>,
}

impl Unsecured {
    pub(super) fn new(module: &LoginModule) -> Result<Self, String> {
        let subject = module.required("unsecuredLoginStringClaim_sub").map_err(|why| {
            format!(
                "{why}; for tokens of an issuer set sasl.oauthbearer.token.endpoint.url, or give a provider to \
                 sasl_oauthbearer"
            )
        })?;
        if subject.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
            return Err("has a subject with a quote, a backslash or a control character in it".to_owned());
        }
        let seconds = module.option("unsecuredLoginLifetimeSeconds").unwrap_or("3600");
        let seconds = seconds.parse().map_err(|_| "has unsecuredLoginLifetimeSeconds that are no number".to_owned())?;
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(Self {
            subject: subject.to_owned(),
            life: finite(Duration::from_secs(seconds)),
            extensions: module.options_after("unsecuredLoginExtension_").map(owned).collect(),
            wall_clock: Arc::new(SystemClock),
        })
    }

    fn write(&self) -> BearerToken {
        let now = self.wall_clock.now();
        let end = now + self.life;
        let claims = self.claims(now, end);
        let section = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let token = BearerToken::new(format!("{}.{}.", section(r#"{"alg":"none"}"#), section(&claims))).expires_at(end);
        self.extensions.iter().fold(token, |token, (name, value)| token.extension(name, value))
    }

    fn claims(&self, now: SystemTime, end: SystemTime) -> String {
        format!(r#"{{"sub":"{}","iat":{},"exp":{}}}"#, self.subject, seconds(now), seconds(end))
    }
}

/// Seconds of the epoch with their fraction, as Java writes them: in whole ones a token would end before the client
/// thinks so.
fn seconds(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:03}", since.as_secs(), since.subsec_millis())
}

impl TokenProvider for Unsecured {
    fn token(&self) -> ProvidingToken<'_> {
        Box::pin(std::future::ready(Ok(self.write())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A life that no clock can be moved on by is a long one.
    #[test]
    fn a_life_without_end_is_bounded() {
        for seconds in [u64::MAX, i64::MAX as u64, 0] {
            let options = format!("unsecuredLoginStringClaim_sub=alice unsecuredLoginLifetimeSeconds=\"{seconds}\"");
            let module = LoginModule::read(&format!("a.OAuthBearerLoginModule required {options};")).expect("a module");

            let token = Unsecured::new(&module).expect("good options").write();

            assert!(token.end() >= Some(SystemTime::UNIX_EPOCH));
        }
    }

    /// The broker ends the token when the client thinks that it ends, to the millisecond.
    #[test]
    fn claims_have_fractions_of_seconds() {
        let options = "unsecuredLoginStringClaim_sub=alice";
        let module = LoginModule::read(&format!("a.OAuthBearerLoginModule required {options};")).expect("a module");
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_750);

        let claims = Unsecured::new(&module).expect("good options").claims(now, now + Duration::from_secs(5));

        assert_eq!(claims, r#"{"sub":"alice","iat":1700000000.750,"exp":1700000005.750}"#);
    }
}
