"""confluent-kafka (librdkafka) against a broker: confluent.py BOOTSTRAP [CODEC]...

Administers a topic, produces 3,000 records for each codec with an idempotent producer, and consumes them in a group of
two members that share the partitions; checks that each record came once, and that commits, watermarks and times are
right. Exits non-zero with the reason when something is not.
"""

import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

RECORDS = 3_000
PARTITIONS = 4
PATIENCE = 30


def check(what, found, expected):
    if found != expected:
        sys.exit(f"confluent-kafka: {what}: found {found!r}, expected {expected!r}")


def create(admin, topic):
    admin.create_topics([NewTopic(topic, PARTITIONS - 1, 1)])[topic].result(PATIENCE)
    admin.create_partitions([NewPartitions(topic, PARTITIONS)])[topic].result(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while len(admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions) < PARTITIONS:
        if time.monotonic() > deadline:
            sys.exit("confluent-kafka: the partitions do not come")
    check("controller is a broker", admin.list_topics(timeout=PATIENCE).controller_id >= 0, True)


def produce(bootstrap, topic, codec):
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec, "linger.ms": 5}
    )
    offsets, errors = {}, []

    def delivered(error, message):
        if error:
            errors.append(str(error))
        else:
            offsets[message.key()] = (message.partition(), message.offset())

    for index in range(RECORDS):
        producer.produce(topic, key=b"k%d" % index, value=b"v%d" % index, headers={"h": b"1"}, on_delivery=delivered)
        producer.poll(0)
    producer.flush(PATIENCE)
    check(f"errors with {codec}", errors, [])
    check(f"acknowledged with {codec}", len(offsets), RECORDS)
    return offsets


def consume(bootstrap, topic, group, expected):
    config = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    config["enable.auto.commit"] = False
    members = [Consumer(config), Consumer(config)]
    for member in members:
        member.subscribe([topic])
    # Both must own partitions before anything is read, so that the rebalance is a part of this.
    deadline = time.monotonic() + PATIENCE
    seen, count = {}, 0
    while len(seen) < len(expected) or any(not member.assignment() for member in members):
        if time.monotonic() > deadline:
            shares = [len(member.assignment()) for member in members]
            sys.exit(f"confluent-kafka: {len(seen)} of {len(expected)} records came, shares {shares}")
        for member in members:
            for message in member.consume(500, timeout=0.1):
                if message.error():
                    sys.exit(f"confluent-kafka: {message.error()}")
                seen[message.key()] = (message.partition(), message.offset())
                check("value", message.value(), b"v" + message.key()[1:])
                check("headers", message.headers(), [("h", b"1")])
                count += 1
            if member.assignment() and count:
                try:
                    member.commit(asynchronous=False)
                except Exception as error:  # A member that read nothing has nothing to commit, or a rebalance is on.
                    if "_NO_OFFSET" not in str(error) and "REBALANCE" not in str(error) and "ILLEGAL" not in str(error):
                        raise
    check("records", seen, expected)
    check("shares", sum(len(member.assignment()) for member in members), PARTITIONS)
    for member in members:
        member.close()


def positions(admin, bootstrap, topic, group, expected):
    ends = [0] * PARTITIONS
    for partition, _ in expected.values():
        ends[partition] += 1
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    watermarks = [reader.get_watermark_offsets(partition, timeout=PATIENCE) for partition in partitions]
    check("watermarks", watermarks, [(0, end) for end in ends])
    committed = [partition.offset for partition in reader.committed(partitions, timeout=PATIENCE)]
    check("committed", all(0 <= offset <= end for offset, end in zip(committed, ends)), True)
    by_time = reader.offsets_for_times([TopicPartition(topic, 0, 1)], timeout=PATIENCE)
    check("offset of an early time", by_time[0].offset, 0)
    latest = admin.list_offsets({partitions[0]: OffsetSpec.latest()})[partitions[0]].result(PATIENCE)
    check("latest offset", latest.offset, ends[0])
    reader.close()


def main():
    bootstrap, codecs = sys.argv[1], sys.argv[2:] or ["none", "gzip", "snappy", "lz4", "zstd"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for codec in codecs:
        topic = group = f"interop-{codec}-{time.time_ns()}"
        create(admin, topic)
        expected = produce(bootstrap, topic, codec)
        consume(bootstrap, topic, group, expected)
        positions(admin, bootstrap, topic, group, expected)
        admin.delete_topics([topic])[topic].result(PATIENCE)
        print(f"confluent-kafka: {codec}: {RECORDS} records there and back, in a group of two")


main()
