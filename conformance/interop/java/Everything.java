import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/**
 * java Everything.java PART BOOTSTRAP TOPIC GROUP: what Java's Admin is told of everything that it can ask, as a
 * transcript of lines. Wrong questions are asked too, for the words in which they are refused.
 */
public class Everything {
    static Admin admin;
    static String bootstrap, topic, group;
    static TopicPartition first, second, nowhere;
    static final String UNKNOWN = "no-such-thing";

    public static void main(String[] args) throws Exception {
        bootstrap = args[1];
        topic = args[2];
        group = args[3];
        first = new TopicPartition(topic, 0);
        second = new TopicPartition(topic, 1);
        nowhere = new TopicPartition(topic, 99);
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "request.timeout.ms", "6000",
            "default.api.timeout.ms", "8000"));
        try {
            Everything.class.getDeclaredMethod(args[0]).invoke(null);
            System.out.println("INTEROP-OK");
            System.exit(0);
        } catch (Throwable e) {
            e.printStackTrace();
            System.out.println("INTEROP-FAIL " + String.valueOf(e.getCause()).replace('\n', ' '));
            System.exit(1);
        }
    }

    static void topics() throws Exception {
        var places = Map.of(0, List.of(1, 2, 3), 1, List.of(2, 3, 1));
        var wanted = new NewTopic(topic, places).configs(Map.of("retention.ms", "1000000"));
        var dry = new CreateTopicsOptions().validateOnly(true);
        say("created dry", () -> made(admin.createTopics(List.of(wanted), dry)));
        say("created", () -> made(admin.createTopics(List.of(wanted))));
        say("created twice", () -> made(admin.createTopics(List.of(wanted))));
        for (var bad : List.of(new NewTopic("a/b", 1, (short) 1), new NewTopic(".", 1, (short) 1),
                new NewTopic("x".repeat(250), 1, (short) 1), new NewTopic(topic + "-b", 0, (short) 1),
                new NewTopic(topic + "-b", 1, (short) 9), new NewTopic(topic + "-b", 1, (short) 0),
                new NewTopic(topic + "-b", Map.of(0, List.of(1, 1))), new NewTopic(topic + "-b", Map.of(0, List.of(9))),
                new NewTopic(topic + "-b", Map.of(1, List.of(1))), new NewTopic(topic + "-b", Map.of(0, List.of())),
                new NewTopic(topic + "-b", new TreeMap<>(Map.of(0, List.of(1), 1, List.of(1, 2)))),
                new NewTopic(topic + "-b", 1, (short) 1).configs(Map.of("no.such.key", "1")),
                new NewTopic(topic + "-b", 1, (short) 1).configs(Map.of("retention.ms", "x")),
                new NewTopic(topic + "-b", 1, (short) 1).configs(Map.of("cleanup.policy", "compact,x")),
                new NewTopic(topic + "-b", 1, (short) 1).configs(Map.of("min.insync.replicas", "0")),
                new NewTopic(topic.replace('-', '.'), 1, (short) 1))) {
            say("refused " + bad, () -> made(admin.createTopics(List.of(bad), dry)));
        }
        known();
        say("described", () -> admin.describeTopics(List.of(topic),
            new DescribeTopicsOptions().includeAuthorizedOperations(true)).allTopicNames().get());
        say("described, unknown", () -> admin.describeTopics(List.of(UNKNOWN)).allTopicNames().get());
        var ids = TopicCollection.ofTopicIds(List.of(new Uuid(7, 7)));
        say("described, unknown id", () -> admin.describeTopics(ids).allTopicIds().get());
        var options = new DescribeTopicsOptions().partitionSizeLimitPerResponse(1);
        say("described in small pages", () -> admin.describeTopics(List.of(topic), options).allTopicNames().get());
        say("listed", () -> admin.listTopics().listings().get().stream().filter(t -> t.name().equals(topic)).toList());

        var ours = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        say("configs with synonyms", () -> configs(ours, true));
        say("configs, unknown topic", () -> configs(new ConfigResource(ConfigResource.Type.TOPIC, UNKNOWN), false));
        for (var op : List.of(set("retention.ms", "2000000"), set("retention.ms", "x"), set("retention.ms", "-2"),
                set("no.such.key", "x"), set("cleanup.policy", "compact"), set("compression.type", "brotli"),
                op("cleanup.policy", "delete", AlterConfigOp.OpType.APPEND),
                op("cleanup.policy", "compact", AlterConfigOp.OpType.SUBTRACT),
                op("retention.ms", "1", AlterConfigOp.OpType.APPEND), op("retention.ms", "",
                    AlterConfigOp.OpType.DELETE))) {
            say("altered " + op, () -> admin.incrementalAlterConfigs(Map.of(ours, List.of(op))).all().get());
        }
        say("altered twice in one", () -> admin.incrementalAlterConfigs(
            Map.of(ours, List.of(set("retention.ms", "1"), set("retention.ms", "2")))).all().get());
        for (var more : List.of(NewPartitions.increaseTo(2), NewPartitions.increaseTo(1), NewPartitions.increaseTo(0),
                NewPartitions.increaseTo(3, List.of(List.of(9))), NewPartitions.increaseTo(3, List.of(List.of(1, 1))),
                NewPartitions.increaseTo(3, List.of(List.of(1), List.of(2))), NewPartitions.increaseTo(3,
                    List.of(List.of(3, 1, 2))))) {
            say("more partitions " + more, () -> admin.createPartitions(Map.of(topic, more)).all().get());
        }
        say("more partitions, unknown", () -> admin.createPartitions(Map.of(UNKNOWN, NewPartitions.increaseTo(2)))
            .all().get());
        settle();
        for (var type : ElectionType.values()) {
            say("elected " + type, () -> admin.electLeaders(type, Set.of(first, nowhere)).partitions().get());
        }
        for (var to : List.of(List.of(9), List.<Integer>of(), List.of(1, 1), List.of(-1))) {
            say("reassigned to " + to, () -> reassign(first, Optional.of(new NewPartitionReassignment(to))));
        }
        say("reassignment cancelled", () -> reassign(first, Optional.empty()));
        say("reassigned, unknown", () -> reassign(nowhere, Optional.of(new NewPartitionReassignment(List.of(1)))));
        say("reassignments", () -> admin.listPartitionReassignments(Set.of(first, nowhere)).reassignments().get());
        say("deleted", () -> admin.deleteTopics(List.of(topic)).all().get());
        settle();
        say("deleted twice", () -> admin.deleteTopics(List.of(topic)).all().get());
        say("deleted, unknown id", () -> admin.deleteTopics(ids).all().get());
    }

    static void records() throws Exception {
        long base = System.currentTimeMillis() / 1000 * 1000 - 3_600_000;
        makeTopic();
        try (var producer = producer(Map.of("enable.idempotence", "false"))) {
            for (int i = 0; i < 10; i++) {
                producer.send(new ProducerRecord<>(topic, 0, base + 1000 * i, "k", "v")).get();
            }
        }
        var specs = new LinkedHashMap<String, OffsetSpec>();
        specs.put("earliest", OffsetSpec.earliest());
        specs.put("latest", OffsetSpec.latest());
        specs.put("max timestamp", OffsetSpec.maxTimestamp());
        specs.put("of a time", OffsetSpec.forTimestamp(base + 3_500));
        specs.put("of a late time", OffsetSpec.forTimestamp(base + 90_000_000));
        specs.put("earliest local", OffsetSpec.earliestLocal());
        specs.put("latest tiered", OffsetSpec.latestTiered());
        for (var spec : specs.entrySet()) {
            for (var at : List.of(first, second)) {
                say(spec.getKey() + " of " + at, () -> admin.listOffsets(Map.of(at, spec.getValue())).all().get());
            }
        }
        say("latest, committed", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest()),
            new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get());
        for (long at : List.of(4L, 2L, 11L, -2L)) {
            say("records before " + at + " deleted", () -> admin.deleteRecords(Map.of(first,
                RecordsToDelete.beforeOffset(at)))
                .lowWatermarks().get(first).get().lowWatermark());
        }
        say("earliest now", () -> admin.listOffsets(Map.of(first, OffsetSpec.earliest())).all().get());
        say("latest now", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest())).all().get());
        say("max timestamp now", () -> admin.listOffsets(Map.of(first, OffsetSpec.maxTimestamp())).all().get());
        say("producers", () -> admin.describeProducers(List.of(second)).all().get());
        say("log dirs", () -> {
            var told = new TreeMap<Object, Object>();
            admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions().get().forEach((node, dirs) ->
                dirs.forEach((path, dir) -> {
                told.put("dir of " + node, dir.error() + " " + dir.totalBytes().isPresent() + " " + dir.usableBytes()
                    .isPresent());
                dir.replicaInfos().forEach((p, info) -> {
                    if (p.topic().equals(topic)) told.put(p + " on " + node, info.offsetLag() + " " + info.isFuture()
                        + " " + (info.size() > 0));
                });
            }));
            return told;
        });
        var replica = new TopicPartitionReplica(topic, 0, 1);
        say("replica's log dir", () -> {
            var info = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
            return info.getCurrentReplicaOffsetLag() + " " + info.getFutureReplicaLogDir() + " "
                + info.getFutureReplicaOffsetLag();
        });
        say("replica moved nowhere", () -> admin.alterReplicaLogDirs(Map.of(replica, "/no/such/dir")).all().get());
        say("all records deleted", () -> admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(-1)))
            .lowWatermarks().get(first).get().lowWatermark());
        say("earliest at last", () -> admin.listOffsets(Map.of(first, OffsetSpec.earliest())).all().get());
        say("unknown replica moved", () -> admin.alterReplicaLogDirs(
            Map.of(new TopicPartitionReplica(UNKNOWN, 0, 1), "/no/such/dir")).all().get());
    }

    static void groups() throws Exception {
        makeTopic();
        var at = Map.of(first, new OffsetAndMetadata(3, Optional.of(0), "note"), second, new OffsetAndMetadata(5));
        say("offsets altered", () -> admin.alterConsumerGroupOffsets(group, at).all().get());
        say("offsets", () -> admin.listConsumerGroupOffsets(group).all().get());
        say("offset of an unknown partition altered", () -> admin.alterConsumerGroupOffsets(group,
            Map.of(nowhere, new OffsetAndMetadata(3))).all().get());
        say("offsets of an unknown group", () -> admin.listConsumerGroupOffsets(UNKNOWN).all().get());
        say("a group by its commits", () -> admin.describeConsumerGroups(List.of(group)).all().get());
        say("it as a classic one", () -> admin.describeClassicGroups(List.of(group)).all().get());
        say("it as a share group", () -> admin.describeShareGroups(List.of(group)).all().get());
        say("it as a streams group", () -> admin.describeStreamsGroups(List.of(group)).all().get());
        say("listed", () -> listed(new ListGroupsOptions()));
        say("listed as empty", () -> listed(new ListGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY))));
        say("listed as stable", () -> listed(new ListGroupsOptions().inGroupStates(Set.of(GroupState.STABLE))));
        for (var type : List.of(GroupType.CLASSIC, GroupType.CONSUMER, GroupType.SHARE)) {
            say("listed as " + type, () -> listed(new ListGroupsOptions().withTypes(Set.of(type))));
        }
        say("unknown described", () -> admin.describeConsumerGroups(List.of(UNKNOWN)).all().get());
        say("unknown described as classic", () -> admin.describeClassicGroups(List.of(UNKNOWN)).all().get());
        say("unknown described as share", () -> admin.describeShareGroups(List.of(UNKNOWN)).all().get());
        say("unknown described as streams", () -> admin.describeStreamsGroups(List.of(UNKNOWN)).all().get());
        say("member removed from unknown", () -> admin.removeMembersFromConsumerGroup(UNKNOWN,
            new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("i")))).all().get());
        say("offsets deleted", () -> admin.deleteConsumerGroupOffsets(group, Set.of(second)).all().get());
        say("offset of an unknown partition deleted", () -> admin.deleteConsumerGroupOffsets(group, Set.of(nowhere))
            .all().get());
        say("offsets of an unknown group deleted", () -> admin.deleteConsumerGroupOffsets(UNKNOWN, Set.of(second))
            .all().get());
        say("offsets left", () -> admin.listConsumerGroupOffsets(group).all().get());
        for (var protocol : List.of("classic", "consumer")) {
            var live = group + "-" + protocol;
            Map<String, Object> settings = Map.of("group.protocol", protocol, "group.id", live, "group.instance.id",
                "i1");
            try (var member = consumer(settings)) {
                member.subscribe(List.of(topic));
                until(() -> {
                    member.poll(Duration.ofMillis(100));
                    return member.assignment().size() == 2;
                });
                member.commitSync(Map.of(first, new OffsetAndMetadata(0)));
                say(protocol + " described", () -> admin.describeConsumerGroups(List.of(live),
                    new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all().get());
                say(protocol + " described as classic", () -> admin.describeClassicGroups(List.of(live)).all().get());
                say(protocol + " listed", () -> listed(new ListGroupsOptions()
                    .inGroupStates(Set.of(GroupState.STABLE))));
                say(protocol + " deleted while it lives", () -> admin.deleteConsumerGroups(List.of(live)).all().get());
                say(protocol + " offset deleted while it lives", () -> admin.deleteConsumerGroupOffsets(live,
                    Set.of(first)).all().get());
                say(protocol + " offset altered while it lives", () -> admin.alterConsumerGroupOffsets(live, at).all()
                    .get());
                say(protocol + " unknown instance removed", () -> admin.removeMembersFromConsumerGroup(live,
                    new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("i9")))).all().get());
                if (protocol.equals("classic")) {
                    say(protocol + " member removed", () -> admin.removeMembersFromConsumerGroup(live,
                        new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("i1")))).all().get());
                    say(protocol + " without members", () -> admin.describeConsumerGroups(List.of(live)).all().get());
                }
            }
        }
        say("deleted", () -> admin.deleteConsumerGroups(List.of(group, group + "-classic")).all().get());
        say("deleted twice", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
        say("unknown deleted", () -> admin.deleteConsumerGroups(List.of(UNKNOWN)).all().get());
    }

    static void share() throws Exception {
        makeTopic();
        var resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        say("configs", () -> configs(resource, true));
        say("reset set", () -> admin.incrementalAlterConfigs(Map.of(resource,
            List.of(set("share.auto.offset.reset", "earliest")))).all().get());
        try (var producer = producer(Map.of())) {
            for (int i = 0; i < 10; i++) producer.send(new ProducerRecord<>(topic, i % 2, "k", "v")).get();
        }
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "group.id", group,
            "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class);
        try (var member = new KafkaShareConsumer<String, String>(settings)) {
            member.subscribe(List.of(topic));
            var got = new ArrayList<String>();
            until(() -> {
                member.poll(Duration.ofMillis(200)).forEach(r -> got.add(r.partition() + "@" + r.offset() + " "
                    + r.deliveryCount()));
                member.commitSync();
                return got.size() >= 10;
            });
            say("records", () -> got);
            say("described", () -> admin.describeShareGroups(List.of(group),
                new DescribeShareGroupsOptions().includeAuthorizedOperations(true)).all().get());
            say("described as a consumer group", () -> admin.describeConsumerGroups(List.of(group)).all().get());
            say("listed", () -> listed(new ListGroupsOptions().withTypes(Set.of(GroupType.SHARE))));
            say("offsets altered while it lives", () -> admin.alterShareGroupOffsets(group, Map.of(first, 1L)).all()
                .get());
            say("offsets deleted while it lives", () -> admin.deleteShareGroupOffsets(group, Set.of(topic)).all()
                .get());
            say("deleted while it lives", () -> admin.deleteShareGroups(List.of(group)).all().get());
        }
        until(() -> admin.describeShareGroups(List.of(group)).all().get().get(group).members().isEmpty());
        say("without members", () -> admin.describeShareGroups(List.of(group)).all().get());
        say("offsets altered", () -> admin.alterShareGroupOffsets(group, Map.of(first, 1L)).all().get());
        say("offset of an unknown partition altered", () -> admin.alterShareGroupOffsets(group, Map.of(nowhere, 1L))
            .all().get());
        say("offsets", () -> admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()
            .topicPartitions(List.of(first)))).all().get());
        say("offsets of an unknown group", () -> admin.listShareGroupOffsets(Map.of(UNKNOWN,
            new ListShareGroupOffsetsSpec())).all().get());
        say("offsets altered, unknown group", () -> admin.alterShareGroupOffsets(group + "-new", Map.of(first, 2L))
            .all().get());
        say("offsets of an unknown topic deleted", () -> admin.deleteShareGroupOffsets(group, Set.of(UNKNOWN)).all()
            .get());
        say("offsets deleted", () -> admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get());
        say("offsets after", () -> admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all()
            .get());
        say("deleted as a consumer group", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
        say("deleted as a share group", () -> admin.deleteShareGroups(List.of(group)).all().get());
        say("described after", () -> admin.describeShareGroups(List.of(group)).all().get());
    }

    static void transactions() throws Exception {
        makeTopic();
        var id = group + "-txn";
        say("unknown", () -> admin.describeTransactions(List.of(UNKNOWN)).all().get());
        try (var former = producer(Map.of("transactional.id", id))) {
            former.initTransactions();
        }
        try (var producer = producer(Map.of("transactional.id", id, "transaction.timeout.ms", "60000"))) {
            producer.initTransactions();
            say("described as empty", () -> transaction(id));
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "k", "v")).get();
            producer.send(new ProducerRecord<>(topic, 1, "k", "v")).get();
            var one = admin.describeTransactions(List.of(id)).all().get().get(id);
            say("described", () -> transaction(id));
            say("listed", () -> listed(new ListTransactionsOptions().filterProducerIds(Set.of(one.producerId()))));
            say("listed by state", () -> listed(new ListTransactionsOptions()
                .filterStates(Set.of(TransactionState.ONGOING))));
            say("listed by another state", () -> listed(new ListTransactionsOptions()
                .filterStates(Set.of(TransactionState.EMPTY))));
            say("listed by length", () -> listed(new ListTransactionsOptions().filterOnDuration(600_000)));
            say("listed by pattern", () -> listed(new ListTransactionsOptions().filterOnTransactionalIdPattern(".*"
                + id)));
            say("listed by a bad pattern", () -> listed(new ListTransactionsOptions()
                .filterOnTransactionalIdPattern("(")));
            var found = admin.describeProducers(List.of(first)).partitionResult(first).get();
            var state = found.activeProducers().get(0);
            say("producers", () -> List.of(state.producerEpoch(), state.lastSequence(), state.coordinatorEpoch(),
                state.currentTransactionStartOffset()));
            int coordinator = state.coordinatorEpoch().orElse(0);
            for (int epoch : List.of(state.producerEpoch() - 1, state.producerEpoch())) {
                var spec = new AbortTransactionSpec(first, state.producerId(), (short) epoch, coordinator);
                say("aborted with epoch " + epoch, () -> admin.abortTransaction(spec).all().get());
            }
            say("stable", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest(), second, OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get());
            say("fenced", () -> admin.fenceProducers(List.of(id)).all().get());
            say("fenced, unknown", () -> admin.fenceProducers(List.of(group + "-new")).all().get());
            say("committed when fenced", () -> {
                producer.commitTransaction();
                return "committed";
            });
        }
        settle();
        say("described when fenced", () -> transaction(id));
        say("terminated", () -> admin.forceTerminateTransaction(id).result().get());
        say("terminated, unknown", () -> admin.forceTerminateTransaction(group + "-never").result().get());
    }

    static void cluster() throws Exception {
        say("cluster", () -> {
            var told = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            return List.of(told.clusterId().get().length(), told.nodes().get(), told.authorizedOperations().get());
        });
        say("cluster with fenced", () -> admin.describeCluster(new DescribeClusterOptions()
            .includeFencedBrokers(true)).nodes().get());
        var features = admin.describeFeatures().featureMetadata().get();
        say("features, supported", () -> features.supportedFeatures());
        say("features, finalized", () -> features.finalizedFeatures());
        var dry = new UpdateFeaturesOptions().validateOnly(true);
        for (var feature : List.of(UNKNOWN, "metadata.version", "transaction.version", "group.version",
            "kraft.version", "share.version")) {
            for (short level : List.of((short) 0, (short) 1, (short) 99)) {
                for (var type : List.of(FeatureUpdate.UpgradeType.UPGRADE, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)) {
                    if (level == 0 && type == FeatureUpdate.UpgradeType.UPGRADE) continue;
                    say(feature + " to " + level + " by " + type, () ->
                        admin.updateFeatures(Map.of(feature, new FeatureUpdate(level, type)), dry).all().get());
                }
            }
        }
        say("quorum", () -> {
            var quorum = admin.describeMetadataQuorum().quorumInfo().get();
            return List.of(quorum.voters().stream().map(v -> v.replicaId()).sorted().toList(), quorum.leaderId() > 0,
                quorum.observers().stream().map(v -> v.replicaId()).sorted().toList(), quorum.nodes().keySet());
        });
        say("unknown broker unregistered", () -> admin.unregisterBroker(99).all().get());
        say("broker's configs", () -> configs(new ConfigResource(ConfigResource.Type.BROKER, "1"), false));
        say("unknown broker's configs", () -> configs(new ConfigResource(ConfigResource.Type.BROKER, "99"), false));
        say("not a broker's configs", () -> configs(new ConfigResource(ConfigResource.Type.BROKER, "x"), false));
        say("dynamic defaults", () -> configs(new ConfigResource(ConfigResource.Type.BROKER, ""), false));
        var broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        for (var op : List.of(set("node.id", "7"), set("no.such.key", "x"), set("log.retention.ms", "x"),
            set("num.io.threads", "0"),
                set("log.dirs", "/x"), set("process.roles", "broker"))) {
            say("altered dry " + op, () -> admin.incrementalAlterConfigs(Map.of(broker, List.of(op)),
                new AlterConfigsOptions().validateOnly(true)).all().get());
        }
        var metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, group);
        say("metrics set", () -> admin.incrementalAlterConfigs(Map.of(metrics, List.of(set("metrics", "org.apache."),
            set("interval.ms", "5000"), set("match", "client_id=none")))).all().get());
        for (var op : List.of(set("interval.ms", "1"), set("match", "x"), set("no.such.key", "x"))) {
            say("metrics altered " + op, () -> admin.incrementalAlterConfigs(Map.of(metrics, List.of(op))).all().get());
        }
        settle();
        say("metrics", () -> configs(metrics, true));
        say("unknown metrics", () -> configs(new ConfigResource(ConfigResource.Type.CLIENT_METRICS, UNKNOWN), false));
        say("config resources", () -> admin.listConfigResources(Set.of(ConfigResource.Type.CLIENT_METRICS,
            ConfigResource.Type.BROKER), new ListConfigResourcesOptions()).all().get().stream().filter(r -> r.name()
                .startsWith(group) || r.name().matches("\\d?")).toList());
        say("metrics deleted", () -> admin.incrementalAlterConfigs(Map.of(metrics, List.of(op("metrics", "",
            AlterConfigOp.OpType.DELETE),
            op("interval.ms", "", AlterConfigOp.OpType.DELETE), op("match", "", AlterConfigOp.OpType.DELETE)))).all()
                .get());
        var groupConfigs = new ConfigResource(ConfigResource.Type.GROUP, group);
        say("group's configs", () -> configs(groupConfigs, true));
        for (var op : List.of(set("consumer.session.timeout.ms", "1"), set("consumer.heartbeat.interval.ms", "1"),
                set("share.record.lock.duration.ms", "1"), set("share.isolation.level", "x"), set("no.such.key",
                    "x"))) {
            say("group altered " + op, () -> admin.incrementalAlterConfigs(Map.of(groupConfigs, List.of(op))).all()
                .get());
        }
    }

    static void security() throws Exception {
        var pattern = new ResourcePattern(ResourceType.TOPIC, topic, PatternType.PREFIXED);
        var ours = new AclBinding(pattern, new AccessControlEntry("User:" + group, "10.0.0.1", AclOperation.READ,
            AclPermissionType.ALLOW));
        say("acl made", () -> admin.createAcls(List.of(ours)).all().get());
        settle();
        say("acls", () -> admin.describeAcls(new AclBindingFilter(pattern.toFilter(), AccessControlEntryFilter.ANY))
            .values().get());
        say("acls that match", () ->
            admin.describeAcls(new AclBindingFilter(new ResourcePatternFilter(ResourceType.TOPIC,
            topic + "-more", PatternType.MATCH), AccessControlEntryFilter.ANY)).values().get());
        for (var bad : List.of(
                new AclBinding(pattern, new AccessControlEntry("nobody", "*", AclOperation.READ,
                    AclPermissionType.ALLOW)),
                new AclBinding(pattern, new AccessControlEntry("User:a", "*", AclOperation.CREATE_TOKENS,
                    AclPermissionType.ALLOW)),
                new AclBinding(new ResourcePattern(ResourceType.CLUSTER, "x", PatternType.LITERAL), ours.entry()),
                new AclBinding(new ResourcePattern(ResourceType.GROUP, "", PatternType.LITERAL), ours.entry()))) {
            say("acl refused " + bad, () -> admin.createAcls(List.of(bad)).all().get());
        }
        say("acls deleted", () -> admin.deleteAcls(List.of(ours.toFilter())).all().get());
        say("acls deleted twice", () -> admin.deleteAcls(List.of(ours.toFilter())).all().get());

        var user = new ClientQuotaEntity(Map.of("user", group));
        var both = new ClientQuotaEntity(Map.of("user", group, "client-id", "c"));
        for (var entity : List.of(user, both)) {
            say("quota of " + entity, () -> quota(entity, "producer_byte_rate", 1000.5));
        }
        say("unknown quota", () -> quota(user, UNKNOWN, 1.0));
        say("quota below nothing", () -> quota(user, "consumer_byte_rate", -1.0));
        say("fraction of a quota", () -> quota(user, "consumer_byte_rate", 0.5));
        say("quota of an unknown kind", () -> quota(new ClientQuotaEntity(Map.of(UNKNOWN, group)),
            "producer_byte_rate", 1.0));
        say("quota of an address", () -> quota(new ClientQuotaEntity(Map.of("ip", "no.such.host.invalid")),
            "connection_creation_rate", 1.0));
        settle();
        say("quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.contains(List.of(
            ClientQuotaFilterComponent.ofEntity("user", group)))).entities().get());
        say("quotas, only", () -> admin.describeClientQuotas(ClientQuotaFilter.containsOnly(List.of(
            ClientQuotaFilterComponent.ofEntity("user", group)))).entities().get());
        say("quotas of an unknown kind", () -> admin.describeClientQuotas(ClientQuotaFilter.contains(List.of(
            ClientQuotaFilterComponent.ofEntity(UNKNOWN, group)))).entities().get());
        for (var entity : List.of(user, both)) say("quota deleted", () -> quota(entity, "producer_byte_rate", null));

        var info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192);
        say("scram made", () -> scram(new UserScramCredentialUpsertion(group, info, "secret")));
        say("too few iterations", () -> scram(new UserScramCredentialUpsertion(group,
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 10), "x")));
        say("too many iterations", () -> scram(new UserScramCredentialUpsertion(group,
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 20000), "x")));
        say("user without a name", () -> scram(new UserScramCredentialUpsertion("", info, "secret")));
        settle();
        say("scram", () -> admin.describeUserScramCredentials(List.of(group)).all().get());
        say("scram of an unknown user", () -> admin.describeUserScramCredentials(List.of(UNKNOWN)).all().get());
        say("scram deleted", () -> scram(new UserScramCredentialDeletion(group, ScramMechanism.SCRAM_SHA_256)));
        say("scram deleted twice", () -> scram(new UserScramCredentialDeletion(group, ScramMechanism.SCRAM_SHA_256)));
        say("token over plaintext", () -> admin.createDelegationToken().delegationToken().get());
        say("token renewed", () -> admin.renewDelegationToken(new byte[] {1}).expiryTimestamp().get());
        say("token expired", () -> admin.expireDelegationToken(new byte[] {1}).expiryTimestamp().get());
        say("tokens", () -> admin.describeDelegationToken().delegationTokens().get());
    }

    // What is asked, and how it is shown

    static Object made(CreateTopicsResult result) throws Exception {
        result.all().get();
        return List.of(result.numPartitions(topic).get(), result.replicationFactor(topic).get(),
            result.config(topic).get().entries().stream().map(e -> entry(e, true)).sorted().toList());
    }

    static Object configs(ConfigResource resource, boolean synonyms) throws Exception {
        var options = new DescribeConfigsOptions().includeSynonyms(synonyms);
        var found = admin.describeConfigs(List.of(resource), options).all().get().get(resource);
        boolean isBroker = resource.type() == ConfigResource.Type.BROKER;
        // What is there only because somebody has set it belongs to the one cluster.
        var own = List.of("listener.name.", "super.users", "allow.everyone.if.no.acl.found");
        return found.entries().stream().filter(e -> own.stream().noneMatch(e.name()::startsWith)).map(e ->
            entry(e, !isBroker) + e.synonyms().stream()
            .map(s -> s.name() + "=" + s.value() + " " + s.source()).toList()).sorted().toList();
    }

    /** A setting. The values of a broker's are its own. */
    static String entry(ConfigEntry e, boolean value) {
        return e.name() + (value ? "=" + e.value() + " " + e.source() : "") + (e.isSensitive() ? " sensitive" : "")
            + (e.isReadOnly() ? " readonly" : "") + " " + e.type();
    }

    static AlterConfigOp set(String name, String value) {
        return op(name, value, AlterConfigOp.OpType.SET);
    }

    static AlterConfigOp op(String name, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    static Object reassign(TopicPartition at, Optional<NewPartitionReassignment> to) throws Exception {
        return admin.alterPartitionReassignments(Map.of(at, to)).all().get();
    }

    static Object listed(ListGroupsOptions options) throws Exception {
        return admin.listGroups(options).all().get().stream().filter(g -> g.groupId().startsWith(group)).toList();
    }

    static Object listed(ListTransactionsOptions options) throws Exception {
        return admin.listTransactions(options).all().get().stream().filter(t -> t.transactionalId().startsWith(group))
            .map(t -> t.transactionalId() + " " + t.state()).toList();
    }

    static Object transaction(String id) throws Exception {
        var t = admin.describeTransactions(List.of(id)).all().get().get(id);
        return List.of(t.state(), t.producerEpoch(), t.transactionTimeoutMs(), t.transactionStartTimeMs().isPresent(),
            t.topicPartitions());
    }

    static Object quota(ClientQuotaEntity entity, String key, Double value) throws Exception {
        return admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
            List.of(new ClientQuotaAlteration.Op(key, value))))).all().get();
    }

    static Object scram(UserScramCredentialAlteration alteration) throws Exception {
        return admin.alterUserScramCredentials(List.of(alteration)).all().get();
    }

    static void makeTopic() throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, Map.of(0, List.of(1, 2, 3), 1, List.of(2, 3, 1))))).all().get();
        known();
    }

    /** Waits until all nodes know the topic. */
    static void known() throws Exception {
        for (var server : bootstrap.split(",")) {
            try (var one = Admin.create(Map.of("bootstrap.servers", server))) {
                until(() -> one.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().stream()
                    .allMatch(p -> p.leader() != null && p.isr().size() == 3));
            }
        }
        settle();
    }

    /** Nodes hear of a change a moment after the controller has made it. */
    static void settle() throws Exception {
        Thread.sleep(300);
    }

    static KafkaProducer<String, String> producer(Map<String, Object> more) {
        var settings = new HashMap<String, Object>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "0"));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        var settings = new HashMap<String, Object>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset",
            "earliest",
            "enable.auto.commit", "false"));
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void until(Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + 20_000_000_000L;
        while (true) {
            try {
                if (holds.call()) return;
            } catch (ExecutionException e) {
                // Not known yet.
            }
            if (System.nanoTime() > end) throw new TimeoutException("it never came");
            Thread.sleep(50);
        }
    }

    /** Asks, and says the answer, or in which words it is refused. */
    static void say(String what, Callable<Object> question) {
        try {
            show("SAID " + what + ":", question.call());
        } catch (Exception e) {
            Throwable cause = e instanceof ExecutionException && e.getCause() != null ? e.getCause() : e;
            System.out.println("SAID " + what + ": " + cause.getClass().getSimpleName() + ": "
                + String.valueOf(cause.getMessage()).replace('\n', ' '));
        }
    }

    /** By what it is sorted: ports are drawn. */
    static String plain(Object value) {
        return String.valueOf(value).replaceAll("127.0.0.1:\\d+", "HOST");
    }

    static void show(String before, Object value) {
        if (value instanceof Map<?, ?> map && map.size() > 0) {
            new TreeMap<>(map.entrySet().stream().collect(Collectors.toMap(e -> String.valueOf(e.getKey()), e ->
                Optional.ofNullable(e.getValue()))))
                .forEach((k, v) -> show(before + " " + k + " =", v.orElse(null)));
        } else if (value instanceof Collection<?> all && all.size() > 0) {
            all.stream().sorted(Comparator.comparing(Everything::plain)).forEach(one -> show(before, one));
        } else {
            System.out.println(before + " " + value);
        }
    }
}
