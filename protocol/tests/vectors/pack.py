#!/usr/bin/env python3
"""pack.py FOLDER: makes the files here of a folder of wire vectors.

The vectors are bytes that Kafka's Java client wrote, with the values that they stand for; the README of FOLDER says
how. All of them are kept. FOLDER has a file for each kind and release; what both releases wrote alike stands here once,
and one column more, `release`, says whose a line is. `listeners` are left out, and of `flags` all but `unstable`: those
of the newest release that has the API's version. Needs the program `zstd`; the same input gives the same bytes.
"""
import gzip, pathlib, subprocess, sys

NEWEST, OLDEST = RELEASES = ["4.4.0", "3.9.2"]
BODIES = ["messages", "unknown-tags", "headers", "frames", "data"]


def rows(folder, kind, release):
    with gzip.open(folder / f"{kind}-{release}.tsv.gz", "rt", encoding="ascii", newline="\n") as lines:
        names = next(lines).lstrip("#").rstrip("\n").split("\t")
        return [dict(zip(names, line.rstrip("\n").split("\t"))) for line in lines]


def unstable(folder):
    """The API versions, as (apiKey, version), that no release has as a stable one."""
    flags = {}
    for release in reversed(RELEASES):
        flags |= {(row["apiKey"], row["version"]): row["flags"] for row in rows(folder, "apis", release)}
    return {version for version, flag in flags.items() if "unstable" in flag}


def merged(folder, kind, change):
    newer, older = ([change(row) for row in rows(folder, kind, release)] for release in RELEASES)
    lines = [("both" if row in older else NEWEST, row) for row in newer]
    lines += [(OLDEST, row) for row in older if row not in newer]
    yield "\t".join(["#release", *newer[0]])
    yield from ("\t".join([release, *row.values()]) for release, row in lines)


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent
    shaky = unstable(source)

    def body(row):
        flags = "unstable" if (row["apiKey"], row["version"]) in shaky else "-"
        return {name: value for name, value in (row | {"flags": flags}).items() if name != "listeners"}

    for kind in [*BODIES, "apis", "records"]:
        text = "\n".join([*merged(source, kind, body if kind in BODIES else dict), ""])
        path = target / f"{kind}.tsv.zst"
        subprocess.run(["zstd", "-q", "-f", "-19", "-", "-o", path], input=text.encode("ascii"), check=True)
        print(f"{path.name}: {text.count(chr(10)) - 1} lines, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
