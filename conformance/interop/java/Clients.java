import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** java Clients.java CHECK BOOTSTRAP TOPIC GROUP: Java's own clients, of whichever version is on the class path. */
public class Clients {
    static String bootstrap, topic, group;

    public static void main(String[] args) {
        bootstrap = args[1];
        topic = args[2];
        group = args[3];
        try {
            switch (args[0]) {
                case "idempotent" -> idempotent();
                case "consumer-classic" -> members("classic");
                case "consumer-848" -> members("consumer");
                case "transactions" -> transactions();
                case "admin" -> admin();
                default -> throw new IllegalArgumentException(args[0]);
            }
            System.out.println("INTEROP-OK");
            System.exit(0);
        } catch (Throwable e) {
            e.printStackTrace();
            System.out.println("INTEROP-FAIL " + String.valueOf(e).replace('\n', ' '));
            System.exit(1);
        }
    }

    /** Keys and headers in each codec, by an idempotent producer; offsets count on in each partition. */
    static void idempotent() throws Exception {
        int sent = 0;
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (var producer = producer(Map.of("compression.type", codec, "enable.idempotence", "true"))) {
                var futures = new ArrayList<java.util.concurrent.Future<RecordMetadata>>();
                for (int i = 0; i < 100; i++) {
                    var record = new ProducerRecord<>(topic, "key" + i, codec + i);
                    record.headers().add("codec", codec.getBytes());
                    futures.add(producer.send(record));
                }
                for (var future : futures) future.get(20, TimeUnit.SECONDS);
                sent += 100;
            }
        }
        var got = read(sent, Map.of());
        same(got.size(), sent, "records");
        for (var record : got) {
            var codec = new String(record.headers().lastHeader("codec").value());
            same(record.value(), codec + record.key().substring(3), "value");
        }
        var offsets = got.stream().collect(Collectors.groupingBy(ConsumerRecord::partition,
            Collectors.mapping(ConsumerRecord::offset, Collectors.toList())));
        offsets.forEach((p, at) -> same(at, LongStream.range(0, at.size()).boxed().toList(), "offsets of " + p));
    }

    /** Two members share the partitions, one leaves and commits, the other goes on from there. */
    static void members(String protocol) throws Exception {
        try (var producer = producer(Map.of())) {
            for (int p = 0; p < 4; p++) producer.send(new ProducerRecord<>(topic, p, "k", "first")).get();
            Map<String, Object> settings =
                Map.of("group.protocol", protocol, "group.id", group, "enable.auto.commit", "false");
            try (var one = consumer(settings)) {
                try (var two = consumer(settings)) {
                    one.subscribe(List.of(topic));
                    two.subscribe(List.of(topic));
                    until(() -> {
                        // What one has read before the other came is read again: positions tell, counts do not.
                        boolean done = true;
                        for (var c : List.of(one, two)) {
                            c.poll(Duration.ofMillis(100));
                            done &= c.assignment().size() == 2;
                            for (var p : c.assignment()) done &= c.position(p) == 1;
                        }
                        return done;
                    }, "two members share four partitions");
                    one.commitSync();
                    two.commitSync();
                }
                until(() -> {
                    one.poll(Duration.ofMillis(100));
                    return one.assignment().size() == 4;
                }, "the member that is left has all partitions");
                for (int p = 0; p < 4; p++) producer.send(new ProducerRecord<>(topic, p, "k", "second")).get();
                var later = new ArrayList<String>();
                until(() -> {
                    one.poll(Duration.ofMillis(100)).forEach(r -> later.add(r.value()));
                    return later.size() >= 4;
                }, "the records after the rebalance");
                same(later, Collections.nCopies(4, "second"), "only new records after the commit");
                one.commitSync();
                var partitions = one.assignment();
                one.committed(partitions).values().forEach(offset -> same(offset.offset(), 2L, "committed"));
            }
        }
    }

    /** Committed and aborted transactions with offsets; an older producer of the same id is fenced. */
    static void transactions() throws Exception {
        Map<String, Object> settings = Map.of("transactional.id", group + "-txn");
        var producer = producer(settings);
        producer.initTransactions();
        for (boolean commits : List.of(true, false, true)) {
            producer.beginTransaction();
            var value = commits ? "committed" : "aborted";
            for (int i = 0; i < 10; i++) producer.send(new ProducerRecord<>(topic, "k", value));
            producer.flush(); // An abort drops what is not sent yet.
            var at = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(commits ? 10 : 99));
            producer.sendOffsetsToTransaction(at, new ConsumerGroupMetadata(group));
            if (commits) producer.commitTransaction(); else producer.abortTransaction();
        }
        var committed = read(20, Map.of("isolation.level", "read_committed"));
        var values = committed.stream().map(ConsumerRecord::value).collect(Collectors.toSet());
        same(values, Set.of("committed"), "read_committed");
        same(read(30, Map.of("isolation.level", "read_uncommitted")).size(), 30, "read_uncommitted");
        try (var admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            var listed = admin.listConsumerGroupOffsets(group);
            var offsets = listed.partitionsToOffsetAndMetadata().get(20, TimeUnit.SECONDS);
            same(offsets.get(new TopicPartition(topic, 0)).offset(), 10L, "the offset of the transactions");
        }
        try (var newer = producer(settings)) {
            newer.initTransactions();
            try {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "k", "late"));
                producer.commitTransaction();
                throw new AssertionError("the older producer is not fenced");
            } catch (KafkaException fenced) {
                System.out.println("fenced: " + fenced);
            }
        }
        producer.close(Duration.ZERO);
    }

    /** The calls of Admin that tools do not make, and what they tell. */
    static void admin() throws Exception {
        try (var admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            var cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            int nodes = cluster.nodes().get().size();
            check(cluster.clusterId().get() != null && cluster.controller().get() != null, "cluster id and controller");
            check(!cluster.authorizedOperations().get().isEmpty(), "authorized operations of the cluster");

            String made = topic + "-made";
            var created = admin.createTopics(List.of(new NewTopic(made, Optional.of(3), Optional.empty())));
            created.all().get();
            same(created.numPartitions(made).get(), 3, "partitions as created");
            check(!created.topicId(made).get().equals(Uuid.ZERO_UUID), "a topic id");
            check(created.config(made).get().get("cleanup.policy").value().equals("delete"), "config as created");
            until(() -> admin.listTopics().names().get().contains(made), "the topic is listed");
            var id = created.topicId(made).get();
            until(() -> {
                try {
                    var described = admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get();
                    return described.get(id).name().equals(made);
                } catch (java.util.concurrent.ExecutionException e) {
                    return false;
                }
            }, "the topic is described by its id");

            var resource = new ConfigResource(ConfigResource.Type.TOPIC, made);
            var set = new AlterConfigOp(new ConfigEntry("retention.ms", "1000000"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
            until(() -> {
                var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
                var configs = admin.describeConfigs(List.of(resource), options).all().get().get(resource);
                var entry = configs.get("retention.ms");
                return entry.value().equals("1000000")
                    && entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG
                    && entry.synonyms().get(0).value().equals("1000000")
                    && entry.type() == ConfigEntry.ConfigType.LONG
                    && entry.documentation() != null;
            }, "the config with its source, synonyms, type and documentation");

            admin.createPartitions(Map.of(made, NewPartitions.increaseTo(5))).all().get();
            until(() -> {
                var described = admin.describeTopics(List.of(made)).allTopicNames().get();
                return described.get(made).partitions().size() == 5;
            }, "5 partitions");
            var ends = new HashMap<TopicPartition, OffsetSpec>();
            for (int p = 0; p < 5; p++) ends.put(new TopicPartition(made, p), OffsetSpec.latest());
            admin.listOffsets(ends).all().get().values().forEach(end -> same(end.offset(), 0L, "the end of no records"));
            same(admin.describeLogDirs(List.of(1)).allDescriptions().get().size(), 1, "log dirs of a node");
            var features = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
            check(features.containsKey("metadata.version"), "features");
            check(admin.describeMetadataQuorum().quorumInfo().get().voters().size() == nodes, "voters");
            check(admin.listConsumerGroups().all().get() != null, "groups");
            admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
            until(() -> !admin.listTopics().names().get().contains(made), "the topic is gone");
        }
    }

    static KafkaProducer<String, String> producer(Map<String, Object> more) {
        var settings = new HashMap<String, Object>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "5"));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        var settings = new HashMap<String, Object>();
        settings.putAll(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest"));
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    /** This many records of all partitions, or fewer if they do not come. */
    static List<ConsumerRecord<String, String>> read(int count, Map<String, Object> more) {
        var got = new ArrayList<ConsumerRecord<String, String>>();
        try (var consumer = consumer(more)) {
            var infos = consumer.partitionsFor(topic);
            var partitions = infos.stream().map(info -> new TopicPartition(topic, info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = System.currentTimeMillis() + 20_000;
            while (got.size() < count && System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(got::add);
            }
        }
        return got;
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    static void until(Condition condition, String what) throws Exception {
        long end = System.currentTimeMillis() + 30_000;
        while (!condition.holds()) {
            check(System.currentTimeMillis() < end, "did not come: " + what);
            Thread.sleep(50);
        }
    }

    static void same(Object got, Object want, String what) {
        check(got.equals(want), what + ": got " + got + ", want " + want);
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }
}
