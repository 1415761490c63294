//! Signature Version 4 of AWS, in a query: what a presigned URL is signed with.
//!
//! ```text
//!   canonical request: GET ⏎ path ⏎ query, sorted ⏎ host:HOST ⏎ ⏎ host ⏎ hash of the payload
//!   string to sign:    AWS4-HMAC-SHA256 ⏎ time ⏎ date/region/service/aws4_request ⏎ hash of the canonical request
//!   signing key:       HMAC of date, region, service and "aws4_request", one after the other, from "AWS4" + secret key
//! ```

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::AwsCredentials;
use crate::auth::SecretText;
use crate::calendar::Moment;

/// The name of the algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The SHA-256 of nothing: the payload of a GET.
pub(super) const EMPTY_PAYLOAD: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A request that is to be signed.
pub(super) struct Signing<'a> {
    pub(super) credentials: &'a AwsCredentials,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) host: &'a str,
    /// As it stands in the URL, with percent signs where it needs them.
    pub(super) path: &'a str,
    /// What the query has besides the parameters of the signature.
    pub(super) query: &'a [(&'a str, &'a str)],
    /// The SHA-256 of the payload in hexadecimal, or what the service takes instead.
    pub(super) payload_hash: &'a str,
    pub(super) at: SystemTime,
    /// How long the signature is good for.
    pub(super) life: Duration,
}

/// The parameters of a signed query, as they are, without percent signs; the signature is the last.
pub(super) type Parameters = Vec<(String, Zeroizing<String>)>;

impl Signing<'_> {
    /// Signs.
    pub(super) fn parameters(&self) -> Parameters {
        let Moment { year, month, day, hour, minute, second } = Moment::of(self.at);
        let date = format!("{year:04}{month:02}{day:02}");
        let time = format!("{date}T{hour:02}{minute:02}{second:02}Z");
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);

        let mut parameters: Parameters = vec![
            ("X-Amz-Algorithm".to_owned(), Zeroizing::new(ALGORITHM.to_owned())),
            ("X-Amz-Credential".to_owned(), Zeroizing::new(format!("{}/{scope}", self.credentials.access_key_id))),
            ("X-Amz-Date".to_owned(), Zeroizing::new(time.clone())),
            ("X-Amz-Expires".to_owned(), Zeroizing::new(self.life.as_secs().to_string())),
            ("X-Amz-SignedHeaders".to_owned(), Zeroizing::new("host".to_owned())),
        ];
        if let Some(token) = &self.credentials.session_token {
            parameters.push(("X-Amz-Security-Token".to_owned(), Zeroizing::new(token.expose().to_owned())));
        }
        let own = self.query.iter().map(|(name, value)| ((*name).to_owned(), Zeroizing::new((*value).to_owned())));
        parameters.extend(own);
        parameters.sort_by(|one, other| one.0.cmp(&other.0));

        let canonical = SecretText::of(format_args!(
            "GET\n{}\n{}\nhost:{}\n\nhost\n{}",
            self.path,
            *query(&parameters),
            self.host,
            self.payload_hash
        ));
        let canonical = canonical.into_text();
        let to_sign = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical.as_bytes())));
        let key = signing_key(self.credentials.secret_access_key.expose(), &date, self.region, self.service);
        let signature = hex(&*hmac(&*key, to_sign.as_bytes()));
        parameters.push(("X-Amz-Signature".to_owned(), Zeroizing::new(signature)));
        parameters
    }
}

/// Parameters as a query has them.
pub(super) fn query(parameters: &Parameters) -> Zeroizing<String> {
    let mut query = SecretText::default();
    for (name, value) in parameters {
        if !query.is_empty() {
            query.push('&');
        }
        encode(name, &mut query);
        query.push('=');
        encode(value, &mut query);
    }
    query.into_text()
}

/// Everything but letters, digits and `-._~` gets a percent sign.
fn encode(text: &str, encoded: &mut SecretText) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("it takes all"),
        }
    }
}

fn signing_key(secret: &str, date: &str, region: &str, service: &str) -> Zeroizing<[u8; 32]> {
    let first = SecretText::of(format_args!("AWS4{secret}")).into_text();
    let mut key = hmac(first.as_bytes(), date.as_bytes());
    for part in [region, service, "aws4_request"] {
        key = hmac(&*key, part.as_bytes());
    }
    key
}

fn hmac(key: &[u8], data: &[u8]) -> Zeroizing<[u8; 32]> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    Zeroizing::new(mac.chain_update(data).finalize().into_bytes().into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all");
        hex
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    /// The credentials of AWS's own examples.
    fn credentials() -> AwsCredentials {
        AwsCredentials::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    }

    /// AWS's documentation, "Deriving the signing key".
    #[test]
    fn the_signing_key_is_that_of_the_documentation() {
        let key = signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830", "us-east-1", "iam");

        assert_eq!(hex(&*key), "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
    }

    /// AWS's documentation, "Authenticating requests: using query parameters": a presigned URL of S3.
    #[test]
    fn the_signature_is_that_of_the_documentation() {
        let credentials = credentials();
        let signing = Signing {
            credentials: &credentials,
            region: "us-east-1",
            service: "s3",
            host: "examplebucket.s3.amazonaws.com",
            path: "/test.txt",
            query: &[],
            payload_hash: "UNSIGNED-PAYLOAD",
            at: UNIX_EPOCH + Duration::from_secs(1_369_353_600),
            life: Duration::from_secs(86_400),
        };

        let parameters = signing.parameters();

        let expected = "X-Amz-Algorithm=AWS4-HMAC-SHA256\
                        &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                        &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
                        &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert_eq!(*query(&parameters), expected);
    }

    #[test]
    fn the_hash_of_nothing_is_what_it_says() {
        assert_eq!(hex(&Sha256::digest(b"")), EMPTY_PAYLOAD);
    }

    #[test]
    fn what_a_url_cannot_hold_gets_a_percent_sign() {
        let parameters = vec![("a b".to_owned(), Zeroizing::new("ä/+=~".to_owned()))];

        assert_eq!(*query(&parameters), "a%20b=%C3%A4%2F%2B%3D~");
    }
}
