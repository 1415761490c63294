"""What the checks share: the registry, the context of one check, and helpers over librdkafka."""
import contextlib, dataclasses, os, pathlib, re, socket, struct, subprocess, threading, time

HOME = pathlib.Path(__file__).resolve().parent.parent
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or HOME.parent.parent / "target").resolve() / "interop"  # what setup installs, and what is built
KEYS = {0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch",
        10: "FindCoordinator", 11: "JoinGroup", 12: "Heartbeat", 13: "LeaveGroup", 14: "SyncGroup",
        15: "DescribeGroups", 16: "ListGroups", 17: "SaslHandshake", 18: "ApiVersions", 19: "CreateTopics",
        20: "DeleteTopics", 21: "DeleteRecords", 22: "InitProducerId", 23: "OffsetForLeaderEpoch",
        24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn", 28: "TxnOffsetCommit", 29: "DescribeAcls",
        30: "CreateAcls", 31: "DeleteAcls", 32: "DescribeConfigs", 33: "AlterConfigs", 35: "DescribeLogDirs",
        36: "SaslAuthenticate", 37: "CreatePartitions", 38: "CreateDelegationToken", 42: "DeleteGroups",
        43: "ElectLeaders", 44: "IncrementalAlterConfigs", 45: "AlterPartitionReassignments",
        46: "ListPartitionReassignments", 47: "OffsetDelete", 48: "DescribeClientQuotas", 49: "AlterClientQuotas",
        50: "DescribeUserScramCredentials", 51: "AlterUserScramCredentials", 55: "DescribeQuorum",
        57: "UpdateFeatures", 60: "DescribeCluster", 61: "DescribeProducers", 65: "DescribeTransactions",
        66: "ListTransactions", 68: "ConsumerGroupHeartbeat", 69: "ConsumerGroupDescribe", 74: "ListConfigResources",
        75: "DescribeTopicPartitions", 76: "ShareGroupHeartbeat", 77: "ShareGroupDescribe", 78: "ShareFetch",
        79: "ShareAcknowledge", 90: "DescribeShareGroupOffsets", 91: "AlterShareGroupOffsets",
        92: "DeleteShareGroupOffsets"}
# What a check needs: {api key: lowest version that must be within the broker's range}.
BASIC = {0: 0, 1: 0, 2: 0, 3: 0}
ADMIN_TOPICS = {19: 0, 20: 0}
CLASSIC = BASIC | {k: 0 for k in (8, 9, 10, 11, 12, 13, 14)}
TXN = BASIC | {k: 0 for k in (10, 22, 24, 26)}
TXN_OFFSETS = TXN | CLASSIC | {25: 0, 28: 0}
KIP848 = BASIC | {8: 0, 9: 0, 10: 0, 68: 0}
KIP848_V1 = KIP848 | {68: 1}  # librdkafka speaks v1 only, and Kafka 3.9's preview v0 only
SHARE = BASIC | {10: 0, 76: 1, 78: 1, 79: 1}


class Fail(Exception):
    """The broker did not do what this check wants; str() is the reason."""


class Skip(Exception):
    """The check cannot judge this broker; str() is the reason."""


@dataclasses.dataclass
class Check:
    name: str
    run: callable
    needs: dict
    timeout: float
    about: str


CHECKS = {}


def check(name, needs=BASIC, timeout=30):
    def add(fn):
        assert name not in CHECKS
        CHECKS[name] = Check(name, fn, needs, timeout, " ".join((fn.__doc__ or "").split()))
        return fn
    return add


def expect(condition, reason):
    if not condition:
        raise Fail(reason)


def same(got, want, what):
    if got != want:
        raise Fail(f"{what}: got {shorten(got)}, want {shorten(want)}")


def shorten(value, limit=160):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[:limit] + "…"


def missing(apis, needs):
    """The APIs that a check needs and the broker does not advertise, as text; '' if none."""
    out = []
    for key, version in sorted(needs.items()):
        low, high = apis.get(key, (0, -1))
        if high < version:
            out.append(f"{KEYS.get(key, '?')}({key})" + (f" v{version}" if version and high >= 0 else ""))
    return ", ".join(out)


# --- the few bytes of the protocol that the driver speaks itself: ApiVersions ---------------------------

def api_versions(address, timeout=5):
    """{key: (min, max)} as the broker at host:port answers ApiVersions."""
    def ask(version, body):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), timeout) as s, s.makefile("rb") as f:
            message = struct.pack(">hhih", 18, version, 1, 7) + b"interop" + body
            s.sendall(struct.pack(">i", len(message)) + message)
            size = f.read(4)
            if len(size) < 4:
                raise OSError("connection closed")
            return f.read(struct.unpack(">i", size)[0])[4:]

    def plain(b):
        count, = struct.unpack_from(">i", b, 2)
        return {k: (lo, hi) for k, lo, hi in (struct.unpack_from(">hhh", b, 6 + 6 * i) for i in range(count))}

    try:
        b = ask(3, b"\0\x08interop\x021\0")  # tagged fields, software name, version
    except OSError:
        return plain(ask(0, b""))
    if struct.unpack_from(">h", b)[0] == 35:  # UNSUPPORTED_VERSION: always answered in v0
        return plain(ask(0, b""))
    count, at, apis = b[2] - 1, 3, {}
    if b[2] & 0x80:
        count, at = (b[2] & 0x7F) + (b[3] << 7) - 1, 4
    for _ in range(count):
        key, low, high = struct.unpack_from(">hhh", b, at)
        apis[key] = (low, high)
        at += 7  # and an empty tag section
    return apis


def knows(address, topic, timeout=5):
    """Whether the broker at host:port knows a topic and its leaders, by Metadata v1; a broker without it is taken to."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout) as s, s.makefile("rb") as f:
        name = topic.encode()
        message = struct.pack(">hhih", 3, 1, 1, 7) + b"interop" + struct.pack(">ih", 1, len(name)) + name
        s.sendall(struct.pack(">i", len(message)) + message)
        size = f.read(4)
        if len(size) < 4:
            return True
        b = f.read(struct.unpack(">i", size)[0])
    at = 4

    def take(layout):
        nonlocal at
        value, = struct.unpack_from(layout, b, at)
        at += struct.calcsize(layout)
        return value

    def skip_text():
        nonlocal at
        length = take(">h")
        at += max(0, length)

    for _ in range(take(">i")):
        take(">i"), skip_text(), take(">i"), skip_text()
    take(">i"), take(">i")
    error = take(">h")
    skip_text(), take(">b")
    leaders = [(take(">h"), take(">i"), take(">i"), [take(">i") for _ in range(take(">i"))],
                [take(">i") for _ in range(take(">i"))]) for _ in range(take(">i"))]
    return error == 0 and all(e == 0 and leader >= 0 for e, _, leader, _, _ in leaders)


# --- the context of one check ---------------------------------------------------------------------------

class Ctx:
    def __init__(self, name, bootstrap, run, apis, options, scale=1.0, step_file=None):
        self.check, self.bootstrap, self.run, self.apis, self.options = name, bootstrap, run, apis, options
        self.scale, self.step_file, self.began, self._brokers = scale, step_file, time.time(), None
        self.serial, self._admin, self.single, self.said = 0, None, set(), []

    def step(self, text):
        """Says what is going on, so that a timeout can name it."""
        print(f"[{time.time() - self.began:6.2f}] {text}", flush=True)
        if self.step_file:
            pathlib.Path(self.step_file).write_text(text)

    def say(self, lines):
        """Adds lines to the transcript, which must be that of real Kafka but for what no two clusters share."""
        ours = self.name_of_check()
        self.said += [plain(line.replace(ours, "OURS").replace(ours.replace("-", "."), "OURS")) for line in lines]

    def name_of_check(self):
        """What all names of this check begin with."""
        return f"{self.run}-{self.check}"

    def file(self, name, text):
        """A file in this check's own folder, which the driver removes."""
        path = pathlib.Path(self.step_file).with_name(name)
        path.write_text(text)
        return str(path)

    def name(self, suffix=""):
        """A name of this run's and this check's own, for a topic, group, user or transactional id."""
        self.serial += 1
        return f"{self.name_of_check()}-{suffix or self.serial}"

    def has(self, key, version=0):
        return self.apis.get(key, (0, -1))[1] >= version

    def need(self, needs):
        lacking = missing(self.apis, needs)
        if lacking:
            raise Skip(f"the broker does not advertise {lacking}")

    def wait(self, predicate, what, seconds=10, every=0.1):
        """Calls predicate until it is true (its value is returned) or Fail."""
        deadline = time.time() + seconds * self.scale
        while True:
            value = predicate()
            if value:
                return value
            if time.time() > deadline:
                raise Fail(f"{what()if callable(what) else what} (after {seconds * self.scale:.0f} s)")
            time.sleep(every)

    # librdkafka, which also makes the topics for the checks of the other clients

    def conf(self, extra=None):
        return {"bootstrap.servers": self.bootstrap, "client.id": "interop", "log_level": 4,
                "socket.timeout.ms": 10000, "error_cb": lambda e: print("error_cb:", e, flush=True), **(extra or {})}

    def admin(self):
        if self._admin is None:
            from confluent_kafka.admin import AdminClient
            self._admin = AdminClient(self.conf())
        return self._admin

    def producer(self, **extra):
        from confluent_kafka import Producer
        return Producer(self.conf({"linger.ms": 5, "message.timeout.ms": 12000} | dotted(extra)))

    def consumer(self, group=None, **extra):
        from confluent_kafka import Consumer
        return Consumer(self.conf({"group.id": group or self.name("reader"), "auto.offset.reset": "earliest",
                                   "enable.auto.commit": False} | dotted(extra)))

    def brokers(self):
        if self._brokers is None:
            self._brokers = self.admin().list_topics(timeout=10).brokers
        return self._brokers

    def topic(self, partitions=1, config=None, suffix="", rf=None, name=None, exact=False):
        """Makes a topic and waits for its leaders. Without CreateTopics: lets Metadata make it, if it will, with
        perhaps more partitions; then send() keeps to partition 0 if one was wanted, and exact skips the check."""
        from confluent_kafka.admin import NewTopic
        name, admin = name or self.name(suffix or f"t{self.serial}"), self.admin()
        created = None
        if self.has(19):
            new = NewTopic(name, partitions, rf or min(3, len(self.brokers())), config=config or {})
            try:
                admin.create_topics([new], operation_timeout=10, request_timeout=10)[name].result(12)
            except Exception as e:
                created = e
        if not self.has(19) or created:  # a topic that any produce would create
            if config:
                raise Fail(f"topic with {config} could not be created: {created or 'no CreateTopics'}")
            self.producer(**{"allow.auto.create.topics": True}).list_topics(name, timeout=10)

        def ready():
            t = admin.list_topics(name, timeout=10).topics[name]
            return t if t.partitions and not t.error and all(p.leader >= 0 for p in t.partitions.values()) else None

        try:
            t = self.wait(ready, "topic never got leaders", 5)
        except Fail as e:
            raise Fail(f"topic could not be created: {created}") if created else e
        self.until_known(name)
        if partitions == 1:
            self.single.add(name)
        if len(t.partitions) < partitions or exact and len(t.partitions) != partitions:
            raise (Fail if created else Skip)(
                f"only an auto-created topic of {len(t.partitions)} partitions: {created or 'no CreateTopics(19)'}")
        self.step(f"topic {name}: {len(t.partitions)} partitions" + (" (auto-created)" if created else ""))
        return name

    def until_known(self, topic):
        """Waits until all brokers know a topic: a cluster tells its nodes one after the other, and clients ask any."""
        everywhere = [f"{b.host}:{b.port}" for b in self.brokers().values()]
        self.wait(lambda: all(knows(address, topic) for address in everywhere), "not all brokers know the topic", 5)

    def send(self, topic, records, **extra):
        """Produces dicts of produce()'s arguments, waits for the reports, returns them in order. One request at a time:
        a broker may refuse the first one after a topic is made, and its retry must not come after the second."""
        producer = self.producer(**{"max.in.flight.requests.per.connection": 1, **extra})
        if topic in self.single:
            records = [{"partition": 0} | r for r in records]
        reports = deliver(producer, topic, records)
        self.step(f"produced {len(reports)} to {topic}")
        return reports

    def read_all(self, topic, seconds=12, partitions=None, **extra):
        """All that a consumer can read of a topic, to the end of each partition; in order per partition."""
        from confluent_kafka import KafkaError, OFFSET_BEGINNING, TopicPartition
        c = self.consumer(**{"enable.partition.eof": True, "fetch.wait.max.ms": 100, **extra})
        try:
            if partitions is None:
                partitions = list(c.list_topics(topic, timeout=10).topics[topic].partitions)
            c.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
            left, got, deadline = set(partitions), [], time.time() + seconds * self.scale
            while left:
                if time.time() > deadline:
                    raise Fail(f"no end of partitions {sorted(left)} of {topic} after {len(got)} records "
                               f"and {seconds * self.scale:.0f} s")
                for m in c.consume(500, 0.2):
                    if not m.error():
                        got.append(m)
                    elif m.error().code() == KafkaError._PARTITION_EOF:
                        left.discard(m.partition())
                    else:
                        raise Fail(f"consumer: {m.error()}")
            self.step(f"read {len(got)} of {topic}")
            return got
        finally:
            c.close()

    # Other programs

    def command(self, argv, input=None, seconds=25, ok=True, env=None, cwd=None):
        """Runs a program in this check's process group; its stdout, stderr and code."""
        self.step("run " + " ".join(str(a).rpartition("/")[2] for a in argv)[:200])
        try:
            p = subprocess.run([str(a) for a in argv], input=input, capture_output=True, text=True,
                               timeout=seconds * self.scale, env=env, cwd=cwd)
        except subprocess.TimeoutExpired as e:
            text = b"".join(filter(None, (e.stdout, e.stderr))).decode(errors="replace")
            print(text[-6000:])
            raise Fail(f"{os.path.basename(str(argv[0]))} did not end in {seconds * self.scale:.0f} s: "
                       f"{last_words(text)}")
        print(p.stdout[-6000:], p.stderr[-6000:], f"exit {p.returncode}", sep="\n", flush=True)
        if ok and p.returncode:
            raise Fail(f"exit {p.returncode}: {last_words(p.stderr + chr(10) + p.stdout)}")
        return p

    def tool(self, version, name, *args, **kw):
        """One of Kafka's command line tools, by its class name (bare: looked up by real-kafka)."""
        return self.command([HOME.parent / "real-kafka", "tool", version, name, *args], **kw)


# What differs from one cluster to the next, and from one run to the next: addresses, ids, times, who coordinates, and
# the order of what has none.
UNLIKE = [(r"127\.0\.0\.1:\d+", "HOST"), (r"\b1\d{12}\b", "TIME"), (r"rack: [\w-]+", "rack: R"),
          (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"), (r"\b(topicId|memberId)=[\w-]{22}\b", r"\1=ID"),
          (r"coordinator=HOST \(id: \d+", "coordinator=HOST (id: N"), (r"Local controller \d+", "Local controller N"),
          (r"producerId=\d+", "producerId=N"), (r"sent to broker \d+", "sent to broker N")]


def plain(line):
    """A line of a transcript without what differs from one cluster to the next."""
    for what, instead in UNLIKE:
        line = re.sub(what, instead, line)
    sort = lambda found: ", ".join(sorted(re.split(", ?", found.group())))
    for name in ("authorizedOperations=\\[", "topicPartitions=", "entries=\\{", "partitions: \\["):
        line = re.sub(f"(?<={name})[^\\])}}]+", sort, line)
    return line


def last_words(text):
    """The most telling line of a program's output."""
    lines = [l.strip() for l in text.splitlines() if l.strip() and not l.strip().startswith(("at ", "... "))]
    for mark in ("INTEROP-FAIL", "Exception:", "Exception", "Error", "error", "ERROR", "FAIL"):
        found = [l for l in lines if mark in l]
        if found:
            return shorten(found[0], 220)
    return shorten(lines[-1], 220) if lines else "no output"


def dotted(extra):
    """Configuration given as keywords: group_id -> group.id; names with dots stay."""
    return {k if "." in k or k.endswith("_cb") else k.replace("_", "."): v for k, v in extra.items()}


def deliver(producer, topic, records, seconds=15):
    reports, errors = [None] * len(records), []

    def report(i):
        def on_delivery(error, message):
            reports[i] = message
            if error:
                errors.append(error)
        return on_delivery

    for i, record in enumerate(records):
        while True:
            try:
                producer.produce(topic, on_delivery=report(i), **record)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    left = producer.flush(seconds)
    if errors:
        raise Fail(f"{len(errors)} of {len(records)} records refused: {errors[0].name()}: {errors[0].str()}")
    if left:
        raise Fail(f"{left} of {len(records)} records got no delivery report in {seconds} s")
    return reports


def poll_groups(ctx, members, until, what, seconds=20, step=0.05):
    """Polls some consumers in turn until a predicate holds; Fail with what() otherwise."""
    deadline = time.time() + seconds * ctx.scale
    while not until():
        if time.time() > deadline:
            raise Fail(f"{what() if callable(what) else what} (after {seconds * ctx.scale:.0f} s)")
        for m in members:
            m.pump(step)


class Member:
    """A librdkafka group member that remembers what befell it."""

    def __init__(self, ctx, topics, group, **extra):
        from confluent_kafka import KafkaError
        self.eof = KafkaError._PARTITION_EOF
        self.c = ctx.consumer(group, **extra)
        self.assigns, self.revokes, self.losses, self.records, self.errors = [], [], [], [], []
        self.c.subscribe(topics, on_assign=lambda c, ps: self.assigns.append([p.partition for p in ps]),
                         on_revoke=lambda c, ps: self.revokes.append([p.partition for p in ps]),
                         on_lost=lambda c, ps: self.losses.append([p.partition for p in ps]))

    def pump(self, seconds=0.05):
        m = self.c.poll(seconds)
        while m is not None:
            if not m.error():
                self.records.append(m)
            elif m.error().code() != self.eof:
                self.errors.append(m.error())
            m = self.c.poll(0)

    def has(self):
        return sorted((p.topic, p.partition) for p in self.c.assignment())

    def close(self):
        self.c.close()


def background(members):
    """Polls members in a thread while a tool looks at their group; returns what stops it."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            for m in members:
                m.pump(0.1)

    t = threading.Thread(target=work, daemon=True)
    t.start()
    return lambda: (stop.set(), t.join())


def spread(members, total):
    """Whether the members hold all partitions between them, each once, and none is without."""
    held = [m.has() for m in members]
    flat = sorted(sum(held, []))
    return len(flat) == total == len(set(flat)) and all(held)


def error_name(exception):
    from confluent_kafka import KafkaException
    if isinstance(exception, KafkaException):
        return exception.args[0].name()
    return f"{type(exception).__name__}: {exception}"


@contextlib.contextmanager
def refused(*names):
    """The block must fail with one of these Kafka errors (librdkafka's names)."""
    try:
        yield
    except Exception as e:
        if isinstance(e, (Fail, Skip)):
            raise
        if error_name(e) not in names:
            raise Fail(f"refused with {error_name(e)}, want {' or '.join(names)}")
    else:
        raise Fail(f"accepted, want {' or '.join(names)}")


def an_hour_ago():
    """A create time in ms, in whole seconds. Older ones (7 days) would fall to a real broker's retention at any moment."""
    return (int(time.time()) - 3600) * 1000


def values(messages):
    return [m.value() for m in messages]
