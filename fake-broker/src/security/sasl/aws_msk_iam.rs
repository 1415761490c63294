//! AWS_MSK_IAM, the mechanism of Amazon's managed Kafka: a signed request (Signature Version 4), as JSON.
//!
//! No broker of Apache Kafka has it. What a client must send is what Amazon documents with its own client; the words of
//! a refusal are Amazon's. Here the secret keys are known, so that the signature is computed again and compared.

use std::collections::BTreeMap;
use std::fmt::Write;

use krafka_protocol::{Bytes, Str};
use sha2::{Digest, Sha256};

use super::Failure;
use super::scram::hmac_sha256;

/// The version of the message, in both directions.
const VERSION: &str = "2020_10_22";

/// How far the clocks may be apart: what AWS takes.
const SKEW_SECS: i64 = 15 * 60;

/// Who may log in: the secret key and the user of each access key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verifier {
    pub(crate) keys: BTreeMap<Str, (Str, Str)>,
}

impl Verifier {
    /// Who has signed, and what is answered.
    pub(super) fn check(&self, token: &[u8], wall_ms: i64) -> Result<(Bytes, Str), Failure> {
        let denied = || Failure::Said("Access denied".to_owned());
        let signed = Signed::read(token).ok_or_else(denied)?;
        let (access_key, scope) = signed.get("x-amz-credential").split_once('/').ok_or_else(denied)?;
        let (secret, user) = self.keys.get(access_key).ok_or_else(denied)?;
        let age = wall_ms / 1000 - signed.seconds().ok_or_else(denied)?;
        let life: i64 = signed.get("x-amz-expires").parse().map_err(|_| denied())?;
        let is_current = age >= -SKEW_SECS && age <= life.min(SKEW_SECS);
        if !is_current || signed.signature(secret, scope).as_deref() != Some(signed.get("x-amz-signature")) {
            return Err(denied());
        }
        let answer = format!(r#"{{"version":"{VERSION}","request-id":"00000000-0000-0000-0000-000000000000"}}"#);
        Ok((Bytes::from(answer), user.clone()))
    }
}

/// What a client has sent.
struct Signed(BTreeMap<String, String>);

impl Signed {
    fn read(token: &[u8]) -> Option<Self> {
        let signed = Self(serde_json::from_slice(token).ok()?);
        let expected = [
            ("version", VERSION),
            ("action", "kafka-cluster:Connect"),
            ("x-amz-algorithm", "AWS4-HMAC-SHA256"),
            ("x-amz-signedheaders", "host"),
        ];
        let is_good = expected.iter().all(|(name, value)| signed.get(name) == *value) && !signed.get("host").is_empty();
        is_good.then_some(signed)
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// When it was signed, in seconds since 1970.
    fn seconds(&self) -> Option<i64> {
        let text = self.get("x-amz-date");
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
        let is_shaped = text.len() == 16 && text.as_bytes()[8] == b'T' && text.ends_with('Z');
        let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
        let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
        // Months begin in March here, so that the leap day is the last of its year.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
        is_shaped.then_some(days * 86_400 + hour * 3_600 + minute * 60 + second)
    }

    /// What the signature must be.
    fn signature(&self, secret: &str, scope: &str) -> Option<String> {
        let parts: Vec<&str> = scope.split('/').collect();
        let [date, region, "kafka-cluster", "aws4_request"] = parts[..] else { return None };
        if !self.get("x-amz-date").starts_with(date) {
            return None;
        }
        let names = [
            ("Action", "action"),
            ("X-Amz-Algorithm", "x-amz-algorithm"),
            ("X-Amz-Credential", "x-amz-credential"),
            ("X-Amz-Date", "x-amz-date"),
            ("X-Amz-Expires", "x-amz-expires"),
            ("X-Amz-Security-Token", "x-amz-security-token"),
            ("X-Amz-SignedHeaders", "x-amz-signedheaders"),
        ];
        let present = names.iter().filter(|(_, name)| self.0.contains_key(*name));
        let query: Vec<String> = present.map(|(name, ours)| format!("{name}={}", encoded(self.get(ours)))).collect();
        let request =
            format!("GET\n/\n{}\nhost:{}\n\nhost\n{}", query.join("&"), self.get("host"), hex(&Sha256::digest(b"")));
        let request = hex(&Sha256::digest(request.as_bytes()));
        let to_sign = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{request}", self.get("x-amz-date"));
        let key = [date, region, "kafka-cluster", "aws4_request"]
            .iter()
            .fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac_sha256(&key, part.as_bytes()));
        Some(hex(&hmac_sha256(&key, to_sign.as_bytes())))
    }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let written = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
                Ok(())
            }
            _ => write!(encoded, "%{byte:02X}"),
        };
        written.expect("a string takes all");
        encoded
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signed by AWS's own signer (botocore 1.44.8) at 2026-02-28 23:59:59.
    const SIGNED: &str = r#"{"version":"2020_10_22","host":"b-1.shop.abc123.c2.kafka.us-east-1.amazonaws.com",
        "user-agent":"x","action":"kafka-cluster:Connect","x-amz-algorithm":"AWS4-HMAC-SHA256",
        "x-amz-credential":"AKIAIOSFODNN7EXAMPLE/20260228/us-east-1/kafka-cluster/aws4_request",
        "x-amz-date":"20260228T235959Z","x-amz-expires":"900","x-amz-signedheaders":"host",
        "x-amz-signature":"b943b6e8bd495e585f25c3649fff28fcb4a2f76d1ae7a2ce00183c95f6c63336"}"#;
    const SIGNED_MS: i64 = 1_772_323_199_000;
    const MINUTE_MS: i64 = 60_000;

    fn verifier() -> Verifier {
        let keys = (Str::from("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), Str::from("alice"));
        Verifier { keys: BTreeMap::from([(Str::from("AKIAIOSFODNN7EXAMPLE"), keys)]) }
    }

    #[test]
    fn a_signature_of_another_signer_lets_in() {
        let (answer, user) = verifier().check(SIGNED.as_bytes(), SIGNED_MS).expect("it is right");

        assert_eq!(&*user, "alice");
        assert!(answer.starts_with(br#"{"version":"2020_10_22""#));
    }

    #[test]
    fn what_is_changed_late_or_unknown_is_denied() {
        let denied = Err(Failure::Said("Access denied".to_owned()));
        let change = |from: &str, to: &str| verifier().check(SIGNED.replace(from, to).as_bytes(), SIGNED_MS);

        for (from, to) in [
            ("us-east-1.amazonaws", "us-east-2.amazonaws"),
            ("b943b6", "b943b7"),
            ("NN7EXAMPLE", "NN8EXAMPLE"),
            ("235959Z", "235958Z"),
            ("\"900\"", "\"800\""),
            ("kafka-cluster/aws4", "s3/aws4"),
            ("2020_10_22", "2020_10_23"),
            ("{", "["),
        ] {
            assert_eq!(change(from, to), denied, "{from} → {to}");
        }
        for minutes in [-14, 0, 15] {
            assert!(verifier().check(SIGNED.as_bytes(), SIGNED_MS + minutes * MINUTE_MS).is_ok(), "{minutes}");
        }
        for minutes in [-16, 16] {
            assert_eq!(verifier().check(SIGNED.as_bytes(), SIGNED_MS + minutes * MINUTE_MS), denied, "{minutes}");
        }
        assert_eq!(Verifier::default().check(SIGNED.as_bytes(), SIGNED_MS), denied);
    }
}
