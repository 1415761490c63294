// Draws groups by chance, and prints what Java's range assignor makes of them: the lines of java.tsv, which say what
// goes in and what comes out. It runs with the jars of any Kafka:
//     java -cp "$(conformance/fetch-kafka 4.4.0)/*" client/src/consumer/assign/range/Ranges.java 250

import java.util.*;
import java.util.function.BiFunction;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.*;

public class Ranges {
    static final Random CHANCE = new Random(7);

    public static void main(String[] arguments) {
        for (int line = 0; line < Integer.parseInt(arguments[0]); line++) {
            int racks = 1 + CHANCE.nextInt(4), topics = 1 + CHANCE.nextInt(3), members = 1 + CHANCE.nextInt(5);
            boolean areAlike = CHANCE.nextBoolean();
            int common = 1 + CHANCE.nextInt(7);
            Map<String, List<PartitionInfo>> placed = new TreeMap<>();
            for (int topic = 0; topic < topics; topic++) {
                String name = letter('t', topic);
                placed.put(name, partitions(name, areAlike ? common : 1 + CHANCE.nextInt(7), racks));
            }
            Map<String, Subscription> subscribed = new TreeMap<>();
            for (int member = 0; member < members; member++) {
                subscribed.put("m" + member, subscription(placed.keySet(), areAlike, racks, 9 - member));
            }
            String who = joined(subscribed, " ", (id, member) -> id + "/" + member.groupInstanceId().orElse("") + "@"
                + member.rackId().orElse("") + "=" + String.join("", member.topics()));
            String where = joined(placed, " ", (name, partitions) -> name + ":"
                + partitions.stream().map(Ranges::racks).collect(Collectors.joining(",")));
            Map<String, List<TopicPartition>> given = new RangeAssignor().assignPartitions(placed, subscribed);
            String what = joined(new TreeMap<>(given), "; ", (id, partitions) -> id + ": " + byTopic(partitions));
            System.out.println(who + "\t" + where + "\t" + what);
        }
    }

    static List<PartitionInfo> partitions(String topic, int count, int racks) {
        int replicas = CHANCE.nextInt(1 + Math.min(racks, 3));
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int partition = 0; partition < count; partition++) {
            Set<String> in = new TreeSet<>();
            while (in.size() < replicas) in.add(letter('a', CHANCE.nextInt(racks)));
            Node[] nodes = in.stream().map(rack -> new Node(rack.charAt(0), "node", 1, rack)).toArray(Node[]::new);
            partitions.add(new PartitionInfo(topic, partition, null, nodes, nodes));
        }
        return partitions;
    }

    static Subscription subscription(Set<String> topics, boolean all, int racks, int instance) {
        List<String> wanted = topics.stream().filter(topic -> all || CHANCE.nextInt(3) > 0).toList();
        boolean isStrange = CHANCE.nextInt(6) == 0, hasRack = CHANCE.nextInt(5) > 0, isStatic = CHANCE.nextInt(4) == 0;
        String rack = letter('a', CHANCE.nextInt(racks + (isStrange ? 1 : 0)));
        var member = new Subscription(wanted, null, List.of(), -1, hasRack ? Optional.of(rack) : Optional.empty());
        member.setGroupInstanceId(isStatic ? Optional.of("i" + instance) : Optional.empty());
        return member;
    }

    static String racks(PartitionInfo partition) {
        String racks = Stream.of(partition.replicas()).map(Node::rack).collect(Collectors.joining());
        return racks.isEmpty() ? "-" : racks;
    }

    static String byTopic(List<TopicPartition> partitions) {
        Map<String, Set<Integer>> topics = new TreeMap<>();
        partitions.forEach(it -> topics.computeIfAbsent(it.topic(), none -> new TreeSet<>()).add(it.partition()));
        return joined(topics, " ", (topic, numbers) -> topic + numbers);
    }

    static <V> String joined(Map<String, V> map, String between, BiFunction<String, V, String> show) {
        Stream<String> shown = map.entrySet().stream().map(it -> show.apply(it.getKey(), it.getValue()));
        return shown.collect(Collectors.joining(between));
    }

    static String letter(char first, int number) {
        return String.valueOf((char) (first + number));
    }
}
