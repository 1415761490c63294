//! Settings of a broker's file that are made in another way here: where its nodes are, what they keep, who may come.

/// Settings of Kafka that a cluster here has from somewhere else, and from where.
pub(super) const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["node.id", "broker.id", "broker.id.generation.enable", "reserved.broker.max.id"],
        "nodes are numbered from 1 on",
    ),
    (
        &[
            "listeners",
            "advertised.listeners",
            "listener.security.protocol.map",
            "inter.broker.listener.name",
            "security.inter.broker.protocol",
        ],
        "`FakeClusterBuilder::listener` opens listeners, and --sasl and --tls of the program do",
    ),
    (&["broker.rack"], "`FakeClusterBuilder::racks` and --racks of the program set the racks of all nodes"),
    (
        &[
            "process.roles",
            "controller.listener.names",
            "controller.quorum.voters",
            "controller.quorum.bootstrap.servers",
        ],
        "every node is a broker and a controller",
    ),
    (
        &["log.dir", "log.dirs", "metadata.log.dir", "remote.log.storage.system.enable"],
        "each node has two disks in memory, and nothing behind them",
    ),
    (
        &["max.connections", "max.connection.creation.rate", "max.connections.per.ip.overrides"],
        "max.connections.per.ip bounds connections, and quotas of `connection_creation_rate` do",
    ),
    (
        &[
            "auto.leader.rebalance.enable",
            "leader.imbalance.check.interval.seconds",
            "leader.imbalance.per.broker.percentage",
        ],
        "leaders stay where they are until nodes go or somebody asks for elections",
    ),
    (
        &[
            "quota.window.num",
            "quota.window.size.seconds",
            "controller.quota.window.num",
            "controller.quota.window.size.seconds",
        ],
        "quotas are measured as they are by default",
    ),
    (&["transaction.partition.verification.enable"], "partitions of transactions are always verified"),
    (&["group.share.enable"], "the feature share.version says whether there are share groups"),
    (
        &[
            "alter.config.policy.class.name",
            "client.quota.callback.class",
            "create.topic.policy.class.name",
            "principal.builder.class",
            "security.providers",
        ],
        "there are no plugins written in Java",
    ),
    (&["authorizer.class.name"], "`FakeClusterBuilder::authorizer` sets one, which the program always has"),
    (
        &["sasl.enabled.mechanisms"],
        "`FakeClusterBuilder::sasl_mechanism` sets them, and --sasl and --oauthbearer of the program do",
    ),
];
