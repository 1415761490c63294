//! AWS_MSK_IAM: the mechanism of Amazon's managed Kafka. The client signs a request that nobody sends, the broker
//! checks the signature with AWS's IAM.
//!
//! ```text
//!   client: {"version":"2020_10_22","host":…,"action":"kafka-cluster:Connect","x-amz-signature":…}
//!   server: {"version":"2020_10_22","request-id":…}
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::sigv4::{EMPTY_PAYLOAD, Signing};
use super::{AwsCredentials, AwsCredentialsProvider};
use crate::auth::SecretText;
use crate::auth::exchange::{Next, wiped};

/// How long a signature is good for: as long as that of AWS's own client.
const LIFE: Duration = Duration::from_secs(900);

/// The service that the request is signed for, and what it asks.
const SERVICE: &str = "kafka-cluster";
const ACTION: &str = "kafka-cluster:Connect";

/// The version of the message, in both directions.
const VERSION: &str = "2020_10_22";

/// What brokers and IAM policies see as `aws:UserAgent`.
const USER_AGENT: &str = concat!("krafka/", env!("CARGO_PKG_VERSION"));

/// The longest answer of a broker that is looked at.
const MAX_ANSWER: usize = 64 * 1024;

/// How to authenticate with AWS_MSK_IAM: whose keys sign, and for which region.
///
/// An [`AwsCredentialsProvider`] becomes one by itself.
#[derive(Clone)]
pub struct MskIam {
    provider: Arc<dyn AwsCredentialsProvider>,
    region: Option<String>,
}

impl<P: AwsCredentialsProvider> From<P> for MskIam {
    fn from(provider: P) -> Self {
        Self::new(provider)
    }
}

impl MskIam {
    /// Signs with the keys that a provider brings.
    pub fn new(provider: impl AwsCredentialsProvider) -> Self {
        Self { provider: Arc::new(provider), region: None }
    }

    /// Sets the region of the cluster, such as `eu-central-1`. Only needed where brokers have names of your own
    /// (private links, tunnels).
    ///
    /// Default: the one in the broker's name, or else the environment variable `AWS_REGION`, or else
    /// `AWS_DEFAULT_REGION`.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    pub(crate) fn provider(&self) -> &Arc<dyn AwsCredentialsProvider> {
        &self.provider
    }

    /// Why it cannot be used, if it cannot.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let is_region = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        let is_wrong = self.region.as_ref().is_some_and(|region| !is_region(region));
        is_wrong.then_some("the region must be written as AWS does, such as eu-central-1")
    }

    /// Begins an exchange with the broker of this name.
    ///
    /// # Errors
    /// Why nothing can be signed, in words.
    pub(crate) fn begin(&self, credentials: &AwsCredentials, host: &str, now: SystemTime) -> Result<Exchange, String> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let region = self.region.clone().or_else(|| region_in(host).map(str::to_owned));
        let region = region.or_else(|| set("AWS_REGION")).or_else(|| set("AWS_DEFAULT_REGION")).ok_or_else(|| {
            format!("the broker's name {host} does not say its region: give it with MskIam::region, or set AWS_REGION")
        })?;
        Ok(Exchange { payload: wiped(payload(credentials, &region, host, now)) })
    }
}

impl fmt::Debug for MskIam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MskIam").field("region", &self.region).finish_non_exhaustive()
    }
}

/// The region in the name of a broker of Amazon's, such as `b-1.name.id.c2.kafka.us-east-1.amazonaws.com`.
fn region_in(host: &str) -> Option<&str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let front = host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
    let mut labels = front.rsplit('.');
    let region = labels.next()?;
    matches!(labels.next(), Some("kafka" | "kafka-serverless")).then_some(region)
}

/// The client's message: the signed query, as JSON, with small letters.
fn payload(credentials: &AwsCredentials, region: &str, host: &str, now: SystemTime) -> SecretText {
    let signing = Signing {
        credentials,
        region,
        service: SERVICE,
        host,
        path: "/",
        query: &[("Action", ACTION)],
        payload_hash: EMPTY_PAYLOAD,
        at: now,
        life: LIFE,
    };
    let mut json = SecretText::default();
    let mut field = |name: &str, value: &str| {
        json.push(if json.is_empty() { '{' } else { ',' });
        quote(name, &mut json);
        json.push(':');
        quote(value, &mut json);
    };
    field("version", VERSION);
    field("host", host);
    field("user-agent", USER_AGENT);
    for (name, value) in signing.parameters() {
        field(&name.to_ascii_lowercase(), &value);
    }
    json.push('}');
    json
}

/// Writes a string of JSON. Control characters, which none of ours has, are left out.
fn quote(text: &str, json: &mut SecretText) {
    json.push('"');
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            json.push('\\');
        }
        json.push(c);
    }
    json.push('"');
}

/// One exchange: everything is in the first message.
pub(crate) struct Exchange {
    payload: Bytes,
}

impl Exchange {
    /// The client's message.
    pub(crate) fn initial_response(&self) -> Bytes {
        self.payload.clone()
    }

    /// The broker has to answer in the same version.
    pub(crate) fn answer(&self, challenge: &[u8]) -> Result<Next, String> {
        let said = std::str::from_utf8(challenge).ok().filter(|said| said.len() <= MAX_ANSWER);
        if said.is_some_and(|said| said.contains(VERSION)) {
            Ok(Next::Done)
        } else {
            Err(format!("the broker's answer is not of the version {VERSION} of AWS_MSK_IAM"))
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
