//! What the authorizer is asked: operations, in Kafka's words and codes.

/// What somebody wants to do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(dead_code, reason = "the handlers that ask for the others are being written")]
pub(crate) enum Operation {
    /// Read records, or take part in a group.
    Read = 3,
    /// Write records, or offsets in a transaction.
    Write = 4,
    /// Make topics, or tokens.
    Create = 5,
    /// Delete topics, records, groups.
    Delete = 6,
    /// Change anything that is not a config.
    Alter = 7,
    /// See that it is there, and what it is like.
    Describe = 8,
    /// Do what brokers do.
    ClusterAction = 9,
    /// Read configs.
    DescribeConfigs = 10,
    /// Change configs.
    AlterConfigs = 11,
    /// Write with a producer id without a transaction.
    IdempotentWrite = 12,
    /// Make a delegation token for somebody else.
    CreateTokens = 13,
    /// See a delegation token of somebody else.
    DescribeTokens = 14,
    /// Take part in two-phase commits (KIP-939).
    TwoPhaseCommit = 15,
}
