//! The APIs that Kafka 4.4 has, by name and number: also those that we do not speak, and those it has withdrawn.

use std::fmt;

use crate::wire::DecodeError;

macro_rules! api_keys {
    ($($name:ident = $code:literal, $flexible:ident $($first:literal)?;)*) => {
        /// An API of Kafka's protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        #[allow(missing_docs)] // Their names are Kafka's, and say it.
        pub enum ApiKey {
            $($name = $code,)*
        }

        impl ApiKey {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The API with this number, if Kafka 4.4 knows one.
            pub const fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name that Kafka gives it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The first version in the flexible encoding, if there is one. The headers depend on it, so it is known
            /// for the APIs too that we do not speak.
            pub const fn flexible_since(self) -> Option<i16> {
                match self {
                    $(Self::$name => api_keys!(@$flexible $($first)?),)*
                }
            }
        }
    };
    (@flexible $first:literal) => { Some($first) };
    (@never) => { None };
}

api_keys! {
    Produce = 0, flexible 9;
    Fetch = 1, flexible 12;
    ListOffsets = 2, flexible 6;
    Metadata = 3, flexible 9;
    LeaderAndIsr = 4, flexible 4;
    StopReplica = 5, flexible 2;
    UpdateMetadata = 6, flexible 6;
    ControlledShutdown = 7, flexible 3;
    OffsetCommit = 8, flexible 8;
    OffsetFetch = 9, flexible 6;
    FindCoordinator = 10, flexible 3;
    JoinGroup = 11, flexible 6;
    Heartbeat = 12, flexible 4;
    LeaveGroup = 13, flexible 4;
    SyncGroup = 14, flexible 4;
    DescribeGroups = 15, flexible 5;
    ListGroups = 16, flexible 3;
    SaslHandshake = 17, never;
    ApiVersions = 18, flexible 3;
    CreateTopics = 19, flexible 5;
    DeleteTopics = 20, flexible 4;
    DeleteRecords = 21, flexible 2;
    InitProducerId = 22, flexible 2;
    OffsetForLeaderEpoch = 23, flexible 4;
    AddPartitionsToTxn = 24, flexible 3;
    AddOffsetsToTxn = 25, flexible 3;
    EndTxn = 26, flexible 3;
    WriteTxnMarkers = 27, flexible 1;
    TxnOffsetCommit = 28, flexible 3;
    DescribeAcls = 29, flexible 2;
    CreateAcls = 30, flexible 2;
    DeleteAcls = 31, flexible 2;
    DescribeConfigs = 32, flexible 4;
    AlterConfigs = 33, flexible 2;
    AlterReplicaLogDirs = 34, flexible 2;
    DescribeLogDirs = 35, flexible 2;
    SaslAuthenticate = 36, flexible 2;
    CreatePartitions = 37, flexible 2;
    CreateDelegationToken = 38, flexible 2;
    RenewDelegationToken = 39, flexible 2;
    ExpireDelegationToken = 40, flexible 2;
    DescribeDelegationToken = 41, flexible 2;
    DeleteGroups = 42, flexible 2;
    ElectLeaders = 43, flexible 2;
    IncrementalAlterConfigs = 44, flexible 1;
    AlterPartitionReassignments = 45, flexible 0;
    ListPartitionReassignments = 46, flexible 0;
    OffsetDelete = 47, never;
    DescribeClientQuotas = 48, flexible 1;
    AlterClientQuotas = 49, flexible 1;
    DescribeUserScramCredentials = 50, flexible 0;
    AlterUserScramCredentials = 51, flexible 0;
    Vote = 52, flexible 0;
    BeginQuorumEpoch = 53, flexible 1;
    EndQuorumEpoch = 54, flexible 1;
    DescribeQuorum = 55, flexible 0;
    AlterPartition = 56, flexible 0;
    UpdateFeatures = 57, flexible 0;
    Envelope = 58, flexible 0;
    FetchSnapshot = 59, flexible 0;
    DescribeCluster = 60, flexible 0;
    DescribeProducers = 61, flexible 0;
    BrokerRegistration = 62, flexible 0;
    BrokerHeartbeat = 63, flexible 0;
    UnregisterBroker = 64, flexible 0;
    DescribeTransactions = 65, flexible 0;
    ListTransactions = 66, flexible 0;
    AllocateProducerIds = 67, flexible 0;
    ConsumerGroupHeartbeat = 68, flexible 0;
    ConsumerGroupDescribe = 69, flexible 0;
    ControllerRegistration = 70, flexible 0;
    GetTelemetrySubscriptions = 71, flexible 0;
    PushTelemetry = 72, flexible 0;
    AssignReplicasToDirs = 73, flexible 0;
    ListConfigResources = 74, flexible 0;
    DescribeTopicPartitions = 75, flexible 0;
    ShareGroupHeartbeat = 76, flexible 0;
    ShareGroupDescribe = 77, flexible 0;
    ShareFetch = 78, flexible 0;
    ShareAcknowledge = 79, flexible 0;
    AddRaftVoter = 80, flexible 0;
    RemoveRaftVoter = 81, flexible 0;
    UpdateRaftVoter = 82, flexible 0;
    InitializeShareGroupState = 83, flexible 0;
    ReadShareGroupState = 84, flexible 0;
    WriteShareGroupState = 85, flexible 0;
    DeleteShareGroupState = 86, flexible 0;
    ReadShareGroupStateSummary = 87, flexible 0;
    StreamsGroupHeartbeat = 88, flexible 0;
    StreamsGroupDescribe = 89, flexible 0;
    DescribeShareGroupOffsets = 90, flexible 0;
    AlterShareGroupOffsets = 91, flexible 0;
    DeleteShareGroupOffsets = 92, flexible 0;
    StreamsGroupTopologyDescriptionUpdate = 93, flexible 0;
    UnregisterController = 94, flexible 0;
}

impl ApiKey {
    /// The number.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The same as [`flexible_since`](Self::flexible_since).
    pub const fn flexible_version(self) -> Option<i16> {
        self.flexible_since()
    }

    /// The API with this number; what the derive writes for `key = …`, so that a wrong one does not compile.
    #[doc(hidden)]
    pub const fn known(code: i16) -> Self {
        match Self::from_code(code) {
            Some(key) => key,
            None => panic!("no API has this number"),
        }
    }
}

impl TryFrom<i16> for ApiKey {
    type Error = DecodeError;

    fn try_from(code: i16) -> Result<Self, DecodeError> {
        Self::from_code(code).ok_or_else(|| DecodeError::unspoken(code))
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, InitProducerIdRequest, Message, Reader, Request, Versions, Writer};

    #[test]
    fn numbers_name_apis_and_apis_have_numbers() {
        for (index, key) in ApiKey::ALL.iter().enumerate() {
            assert_eq!(ApiKey::try_from(key.code()), Ok(*key));
            assert_eq!(usize::try_from(key.code()), Ok(index), "Kafka 4.4 has no gaps");
        }
        assert_eq!(ApiKey::ALL.len(), 95);

        let error = ApiKey::try_from(95).unwrap_err();
        assert_eq!(error.to_string(), "API key 95 is not one that we speak");
    }

    #[test]
    fn the_table_and_the_messages_agree() {
        assert!(ApiKey::SPOKEN.is_sorted());
        for key in ApiKey::SPOKEN {
            let schemas = key.schemas().expect("we speak it");
            for schema in schemas {
                assert_eq!(schema.key, Some(key.code()), "{}", schema.name);
                assert_eq!(schema.flexible, key.flexible_since(), "{}", schema.name);
                assert_eq!(Some(schema.versions), key.versions(), "{}", schema.name);
            }
            if let (Some(offered), Some(versions)) = (key.offered(), key.versions()) {
                assert_eq!(versions.intersection(&offered), Some(offered), "{key}");
            }
            assert_eq!(schemas[0].name, format!("{key}Request"));
            assert_eq!(schemas[1].name, format!("{key}Response"));
        }
    }

    #[test]
    fn an_unstable_version_is_there_with_the_feature_alone() {
        let is_on = cfg!(feature = "unstable-protocol");
        let spoken = Versions::new(0, if is_on { 6 } else { 5 });

        assert_eq!(ApiKey::InitProducerId.versions(), Some(spoken));
        assert_eq!(InitProducerIdRequest::VERSIONS, spoken);
        assert_eq!(ApiKey::InitProducerId.offered(), Some(Versions::new(0, 5)));
        let request = InitProducerIdRequest::default();
        let mut out = Writer::new();
        assert_eq!(request.encode(&mut out, 6).is_ok(), is_on);
        assert_eq!(request.size(6).is_ok(), is_on);
        let body = Bytes::from_static(&[0; 18]);
        let decoded = InitProducerIdRequest::decode(&mut Reader::new(body), 6);
        let error = decoded.err().map(|error| error.to_string());
        let refusal = (!is_on).then(|| "InitProducerIdRequest v6 is unknown: versions 0 to 5 are".to_owned());
        assert_eq!(error, refusal);
    }
}
