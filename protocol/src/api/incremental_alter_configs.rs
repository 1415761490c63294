//! IncrementalAlterConfigs (44): changes single settings of a resource and leaves the others alone (KIP-339).
//!
//! Sent to any broker, which forwards it to the controller, or to a controller itself (KIP-919); changes to one
//! broker or its loggers, to that broker. [`describe_configs`](super::describe_configs) lists the types of resources.
//! A value may be a password, so `Debug` shows only how long it is.
//!
//! Version 1 is the first in the flexible encoding (KIP-482).

use std::fmt;

use super::redacted::Redacted;
use crate::{Message, Str};

/// Changes settings.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 44, versions = 0..=1, flexible = 1.., response = IncrementalAlterConfigsResponse)]
pub struct IncrementalAlterConfigsRequest {
    /// The resources. One that appears twice is INVALID_REQUEST.
    pub resources: Vec<AlterConfigsResource>,
    /// Whether only to check the request and change nothing.
    pub validate_only: bool,
}

/// A resource and what shall change about it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct AlterConfigsResource {
    /// What it is.
    pub resource_type: i8,
    /// Its name; for brokers, empty for the defaults of the whole cluster.
    pub resource_name: Str,
    /// The changes. A setting that appears twice is INVALID_REQUEST, whatever is done to it.
    pub configs: Vec<AlterableConfig>,
}

/// A change to one setting.
#[derive(Clone, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct AlterableConfig {
    /// The setting's name.
    pub name: Str,
    /// What to do: 0 set it, 1 unset it, so that the default is back, 2 add the value to its list, 3 take the value
    /// out of its list. The last two are INVALID_CONFIG where the setting is no list; values that are already there,
    /// or are not there to be taken out, change nothing.
    pub config_operation: i8,
    /// The value; for 2 and 3 perhaps several with commas between them. `None` only to unset, where a value is
    /// ignored.
    pub value: Option<Str>,
}

/// Which resources are changed.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 44, versions = 0..=1, flexible = 1..)]
pub struct IncrementalAlterConfigsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The outcomes, by resource.
    pub responses: Vec<AlterConfigsResourceResponse>,
}

/// The outcome for one resource: either all of its changes were made, or none.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
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
            .field("config_operation", &self.config_operation)
            .field("value", &self.value.as_ref().map(|value| Redacted(value.len())))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_values() {
        let mut config = AlterableConfig { name: "ssl.key.password".into(), ..Default::default() };
        config.value = Some("hunter2".into());

        assert_eq!(
            format!("{config:?}"),
            r#"AlterableConfig { name: "ssl.key.password", config_operation: 0, value: Some([7 bytes]) }"#
        );
    }
}
