//! AlterConfigs (33): replaces all the settings of a resource (KIP-133).
//!
//! What the request does not name goes back to its default, so two who change different settings undo each other's
//! work. IncrementalAlterConfigs (44) has been the better way since Kafka 2.3 (KIP-339).
//!
//! Sent to any broker, which forwards it to the controller, or to a controller itself (KIP-919); changes to one
//! broker, to that broker, which alone can tell whether they make sense.
//! [`describe_configs`](super::describe_configs) lists the types of resources; loggers (8) cannot be set with this. A
//! value may be a password, so `Debug` shows only how long it is.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482).

use std::fmt;

use super::redacted::Redacted;
use crate::{Message, Str};

/// Replaces settings.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 33, versions = 0..=2, flexible = 2.., response = AlterConfigsResponse)]
pub struct AlterConfigsRequest {
    /// The resources. One that appears twice is INVALID_REQUEST.
    pub resources: Vec<AlterConfigsResource>,
    /// Whether only to check the request and change nothing.
    pub validate_only: bool,
}

/// A resource and all that shall be set for it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct AlterConfigsResource {
    /// What it is.
    pub resource_type: i8,
    /// Its name; for brokers, empty for the defaults of the whole cluster.
    pub resource_name: Str,
    /// Its settings. One that appears twice is INVALID_REQUEST.
    pub configs: Vec<AlterableConfig>,
}

/// A setting and its value.
#[derive(Clone, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct AlterableConfig {
    /// The setting's name.
    pub name: Str,
    /// Its value. The schema allows null, the broker does not (INVALID_REQUEST).
    pub value: Option<Str>,
}

/// Which resources are changed.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 33, versions = 0..=2, flexible = 2..)]
pub struct AlterConfigsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The outcomes, by resource.
    pub responses: Vec<AlterConfigsResourceResponse>,
}

/// The outcome for one resource: either all of it was changed, or nothing.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 2..)]
pub struct AlterConfigsResourceResponse {
    /// Why the resource is as it was, 0 if it was changed, or could have been. INVALID_CONFIG: a value is not
    /// possible, or the setting is not known. INVALID_REQUEST, POLICY_VIOLATION, UNKNOWN_TOPIC_OR_PARTITION,
    /// TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED are what they say.
    pub error_code: i16,
    /// The reason in words, `None` if there was no error.
    pub error_message: Option<Str>,
    /// What the resource is.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
}

impl fmt::Debug for AlterableConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlterableConfig")
            .field("name", &self.name)
            .field("value", &self.value.as_ref().map(|value| Redacted(value.len())))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_values() {
        let config = AlterableConfig { name: "ssl.key.password".into(), value: Some("hunter2".into()) };

        assert_eq!(format!("{config:?}"), r#"AlterableConfig { name: "ssl.key.password", value: Some([7 bytes]) }"#);
    }
}
