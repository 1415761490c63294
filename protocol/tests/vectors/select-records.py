#!/usr/bin/env python3
"""Chooses the record vectors that the tests keep: select-records.py WIRE_VECTORS

WIRE_VECTORS is a folder with records-3.9.2.tsv.gz and records-4.4.0.tsv.gz: record sets written by Kafka's Java client,
with what it reads from them (columns: id, magic, codec, level, timestampType, features, seed, hex, json). All of both
is 8 MB, too much to keep. Of 4.4.0 this keeps every small case and one large case of each codec; of 3.9.2 the cases
among these whose bytes differ. Set KRAFKA_RECORD_VECTORS to WIRE_VECTORS to run the tests on all of them.
"""

import gzip
import pathlib
import sys

SMALL = 30_000
LARGE = {
    "v2-gzip-2000", "v2-snappy-2000", "v2-lz4-2000", "v2-zstd-2000",
    "v2-none-hundreds", "v2-lz4@17-hundreds", "v2-zstd@12-hundreds",
}


def read(folder, version):
    with gzip.open(folder / f"records-{version}.tsv.gz", "rt", encoding="ascii") as lines:
        return list(lines)


def write(version, lines):
    path = pathlib.Path(__file__).parent / f"records-{version}.tsv.gz"
    # No name and no time inside, so that the same input gives the same file.
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as out:
        out.write("".join(lines).encode("ascii"))
    print(f"{path.name}: {len(lines) - 1} cases, {path.stat().st_size} bytes")


def main():
    folder = pathlib.Path(sys.argv[1])
    newer, older = read(folder, "4.4.0"), read(folder, "3.9.2")
    chosen = [line for line in newer if len(line) < SMALL or line.split("\t")[0] in LARGE]
    ids = {line.split("\t")[0] for line in chosen}
    differing = [line for line in older[1:] if line.split("\t")[0] in ids and line not in set(newer)]
    write("4.4.0", chosen)
    write("3.9.2", older[:1] + differing)


main()
