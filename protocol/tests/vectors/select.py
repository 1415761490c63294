#!/usr/bin/env python3
"""select.py FOLDER: takes from a full set of wire vectors the lines that the tests here need.

The vectors are bytes that the official Java client wrote, with the values that they stand for; the
README of FOLDER says how. What is kept: the messages that we have, in versions that we have. Lines
and columns stay as they are, but for `listeners` and `flags`. Writing the same input gives the same
bytes, so that a change shows what changed.
"""
import gzip, pathlib, sys

APIS = """ApiVersions Metadata Produce Fetch ListOffsets FindCoordinator JoinGroup SyncGroup Heartbeat LeaveGroup
    OffsetCommit OffsetFetch InitProducerId OffsetForLeaderEpoch CreateTopics DeleteTopics CreatePartitions
    DescribeCluster SaslHandshake SaslAuthenticate ConsumerProtocolSubscription ConsumerProtocolAssignment""".split()
RELEASES = ["3.9.2", "4.4.0"]
KINDS = ["messages", "unknown-tags", "headers", "frames", "data"]
COLUMNS = ["apiKey", "name", "direction", "version", "headerVersion", "seed", "hex", "json", "extra"]


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        names = next(lines).lstrip("#").rstrip("\n").split("\t")
        for line in lines:
            yield dict(zip(names, line.rstrip("\n").split("\t")))


def ours(row, spoken):
    return row["name"] in APIS and (row["name"], row["version"]) in spoken and "unstable" not in row["flags"]


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent
    # Versions that only 3.9 has are not ours; nor is one that is still unstable in 4.4.
    newest = [row for kind in ("messages", "data") for row in rows(source / f"{kind}-4.4.0.tsv.gz")]
    spoken = {(row["name"], row["version"]) for row in newest if "unstable" not in row["flags"]}
    for release in RELEASES:
        for kind in KINDS:
            name = f"{kind}-{release}.tsv.gz"
            lines = ["\t".join(row[c] for c in COLUMNS) for row in rows(source / name) if ours(row, spoken)]
            text = "\n".join(["#" + "\t".join(COLUMNS), *lines, ""])
            (target / name).write_bytes(gzip.compress(text.encode("ascii"), 9, mtime=0))


if __name__ == "__main__":
    main()
