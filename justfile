# What one does here, by name. `just` without a name lists them. Each recipe is a line that works without just, too.

default:
    @just --list --unsorted

# Everything that the README promises to pass.
test:
    cargo test --workspace

# Formatting, clippy on everything, and the shape of the house.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p krafka --lib --no-default-features -- -D warnings
    cargo test -p krafka --test tidy

# The documentation, with broken links as errors.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# The client without TLS compiles no C at all, and with it no C outside ring.
no-c:
    .ci/no-c

# Every message against Kafka's own schemas, in the jars of six releases (by Maven; without them it fails).
schemas:
    CI=true cargo test -p krafka-protocol --test protocol schemas

# Every message and record batch against the bytes of Java's serializers.
golden:
    cargo test -p krafka-protocol --test protocol golden
    cargo test -p krafka-protocol --test protocol --features unstable-protocol golden

# All stories in all simulated worlds; `just scenarios --seeds 0..50` sweeps.
scenarios *args:
    cargo run --release -p scenarios -- {{args}}

# The stories on a cluster: `fake`, a Kafka version such as `4.4.0`, or `external` (KRAFKA_BOOTSTRAP).
conformance cluster *args:
    cargo run --release -p conformance --features zstd -- {{cluster}} {{args}}

# Where each rule of the wire tests holds: on the fake, on real Kafka 4.4.0 and 3.9.2; writes conformance/AGREEMENTS.md.
agreements *args:
    conformance/agreements {{args}}

# Which tests judge which scenario and which API, by the marks in them; writes conformance/COVERAGE.md and SCENARIOS.md.
coverage:
    KRAFKA_WRITE_COVERAGE=1 cargo test -q -p conformance-wire coverage

# Clients that others wrote against the fake, compared with what real Kafka said; `just interop --as-version 3.9`.
interop *args:
    conformance/interop/interop {{args}}

# The programs of conformance/OTHER-CLIENTS.md (Java, Python, Go, Node), each against the fake.
snippets *names:
    conformance/snippets/run {{names}}

# franz-go's own suites, kgo and kadm, against the fake; what they leave out is in conformance/franz-go/exclusions.txt.
franz-go *args:
    conformance/franz-go/run {{args}}

# The codec and record benchmarks.
bench *args:
    cargo bench -p krafka-benches {{args}}

# The codec beside the kafka-protocol crate, in one criterion run on the same bytes (compiles C: its lz4).
bench-peers *args:
    cd benches/peers && cargo bench {{args}}

# Instructions of each codec case by callgrind, beside the baseline; `just bench-check --accept` makes a new one.
bench-check *args:
    benches/check {{args}}

# Sessions with one mistake of the peer, at every byte of every answer; some minutes. `cargo test` tries a few hundred.
hostile:
    KRAFKA_HOSTILE=all cargo test --release -p krafka --test hostile

# One minute of each fuzz target.
fuzz seconds="60":
    fuzz/run {{seconds}}

# Changes of the wire that no test notices; `just mutants --in-diff FILE` for those to what a diff touches.
mutants *args:
    cargo mutants -p krafka-protocol {{args}}

# What lands: the same as CI does.
ci:
    bash .ci/run
