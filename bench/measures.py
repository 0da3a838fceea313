"""Measurements: each is a function of a running broker and the size of the load."""

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from interop.brokers import Broker

from bench import load, mixture, planning
from bench.process import anonymous_bytes, cpu_s
from bench.producing import cpu_per_record
from bench.warm_memory import warm_memory

MIB = 1 << 20
REBALANCE_WAIT_S = 3.0


@dataclass(frozen=True)
class Size:
    """How much load a round puts on a broker."""

    records: int
    seconds: float
    gib_fetched: float
    topics_created: int
    metadata_topics: int  #: of 100 partitions each
    metadata_requests: int
    described_topics: int
    configs_altered: int
    group_members: int
    offsets_loaded: int
    topics_planned: int

    def records_of(self, record_bytes: int) -> int:
        """Return how many records of that size are produced."""
        return self.records if record_bytes < 1024 else self.records // 4


FULL = Size(2_000_000, 10.0, 4.0, 200, 100, 30, 1000, 400, 100, 1_000_000, 10_000)
QUICK = Size(50_000, 1.0, 0.1, 10, 5, 5, 20, 10, 5, 10_000, 100)


@dataclass(frozen=True)
class Metric:
    """One row of the result: name, unit, and the target ratio Barnabas / Kafka, if there is one."""

    text: str
    unit: str
    target: float | None
    more_is_better: bool = False

    def is_reached(self, ratio: float) -> bool | None:
        """Return whether ``ratio`` reaches the target; None without a target."""
        if self.target is None:
            return None
        return ratio >= self.target if self.more_is_better else ratio <= self.target


Measured = Mapping[str, float]


@dataclass(frozen=True)
class Measure:
    """A measurement and its metrics, by name."""

    name: str
    run: Callable[[Broker, Size], Measured]
    metrics: Mapping[str, Metric]
    prepare: Callable[[Broker, Size], object] = lambda _broker, _size: None
    fresh_broker_each_round: bool = False
    #: settings of one contestant only
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Barnabas without the settings, or with those of `plain`, takes Kafka's place: their cost is measured
    against_itself: bool = False


def produce_cpu(broker: Broker, size: Size, record_bytes: int, *properties: str) -> Measured:
    """Return broker CPU per record of the Java producer, in microseconds."""
    return {"cpu": cpu_per_record(broker, size.records_of(record_bytes), record_bytes, *properties)}


def prepare_topic(broker: Broker, _size: Size, topic: str) -> None:
    """Create a topic (its name followed by -0) whose partitions the connections share."""
    load.raw("create", broker.bootstrap, topic=topic, count=1, partitions=8)
    time.sleep(REBALANCE_WAIT_S)


def latency(broker: Broker, size: Size, address: str = "", **security: str) -> Measured:
    """Return the latency of one-record Produce requests with acks=all, one every 200 us, over ten connections."""
    flags = {"connections": 10, "rate": 5_000, "seconds": size.seconds}
    done = load.raw("latency", address or broker.bootstrap, topic="latency-0", **flags, **security)
    return {"p50": done["p50_us"] / 1e3, "p99": done["p99_us"] / 1e3}


def prepare_fetch(broker: Broker, size: Size) -> None:
    """Create a topic of 1 KiB records, one GiB in full size, written by the Java producer."""
    load.raw("create", broker.bootstrap, topic="fetch", count=1)
    load.produce_with_java(broker.bootstrap, "fetch-0", size.records // 2, 1024)


def fetch_cpu(broker: Broker, size: Size, address: str = "", **security: str) -> Measured:
    """Return broker CPU per GiB that a raw consumer fetches from the page cache, in seconds."""
    before_s = cpu_s(broker.pid)
    done = load.raw("fetch", address or broker.bootstrap, topic="fetch-0", gib=size.gib_fetched, **security)
    return {"cpu": (cpu_s(broker.pid) - before_s) / done["gib"]}


def cold_start(broker: Broker, _size: Size) -> Measured:
    """Return the time from the spawn of the process to its first Metadata response, in seconds."""
    return {"time": broker.start_s}


def memory(broker: Broker, size: Size) -> Measured:
    """Return anonymous memory after the start, and after producing and fetching, in MiB."""
    time.sleep(REBALANCE_WAIT_S)
    idle_bytes = anonymous_bytes(broker.pid)
    prepare_fetch(broker, size)
    load.raw("fetch", broker.bootstrap, topic="fetch-0", gib=size.gib_fetched)
    return {"idle": idle_bytes / MIB, "loaded": anonymous_bytes(broker.pid) / MIB}


def create_rate(broker: Broker, size: Size) -> Measured:
    """Return CreateTopics requests per second, one after the other."""
    done = load.raw("create", broker.bootstrap, topic="create", count=size.topics_created)
    load.raw("delete", broker.bootstrap, topic="create", count=size.topics_created)
    return {"rate": done["creates_per_s"]}


def create_time(broker: Broker, size: Size) -> Measured:
    """Return the time of a CreateTopics request for one topic, in milliseconds."""
    return {"time": 1e3 / create_rate(broker, size)["rate"]}


def prepare_metadata(broker: Broker, size: Size) -> None:
    """Create topics of 100 partitions."""
    load.raw("create", broker.bootstrap, topic="wide", count=size.metadata_topics, partitions=100)
    time.sleep(REBALANCE_WAIT_S)


def metadata_time(broker: Broker, size: Size) -> Measured:
    """Return the time of a Metadata request for all topics, in milliseconds."""
    return {"time": load.raw("metadata", broker.bootstrap, count=size.metadata_requests)["median_us"] / 1e3}


def prepare_described(broker: Broker, size: Size) -> None:
    """Create topics of one partition to be described at once."""
    load.raw("create", broker.bootstrap, topic="described", count=size.described_topics)
    time.sleep(REBALANCE_WAIT_S)


def describe_time(broker: Broker, size: Size) -> Measured:
    """Return the time of a DescribeConfigs request for all configs of many topics, in milliseconds."""
    resources = {"topics": size.described_topics, "count": size.metadata_requests}
    return {"time": load.raw("describe", broker.bootstrap, topic="described", **resources)["median_us"] / 1e3}


def alter_rate(broker: Broker, size: Size) -> Measured:
    """Return IncrementalAlterConfigs requests per second, one after the other."""
    done = load.raw("alter", broker.bootstrap, topic="altered-0", count=size.configs_altered)
    return {"rate": done["alters_per_s"]}


def commit_rate(broker: Broker, size: Size) -> Measured:
    """Return OffsetCommit requests of one partition per second: of ten groups at once, and of fifty."""
    flags = {"partitions": 8, "seconds": size.seconds}
    with warm_memory():
        ahead = load.raw("commit", broker.bootstrap, topic="committed-0", connections=10, depth=16, **flags)
        waiting = load.raw("commit", broker.bootstrap, topic="committed-0", connections=50, depth=1, **flags)
    return {"rate": ahead["commits_per_s"], "waiting": waiting["commits_per_s"]}


#: Requests that consumers send between fetches, and their names in the table.
EVERYDAY = {
    "heartbeat": "Heartbeat of a classic member",
    "list-offsets": "ListOffsets, the end of six partitions",
    "poll": "Fetch of 4 KiB from each of six partitions",
}


def prepare_everyday(broker: Broker, size: Size) -> None:
    """Create a topic of six partitions with some records in each."""
    load.raw("create", broker.bootstrap, topic="everyday", count=1, partitions=6)
    time.sleep(REBALANCE_WAIT_S)
    load.raw(
        "mixture",
        broker.bootstrap,
        topic="everyday-0",
        partitions=6,
        depth=16,
        seconds=min(1.0, size.seconds),
    )


def everyday(broker: Broker, size: Size) -> Measured:
    """Return broker CPU per request in microseconds, one in flight on each of 50 connections."""
    measured: dict[str, float] = {}
    for kind in EVERYDAY:
        before_s = cpu_s(broker.pid)
        flags = {"connections": 50, "depth": 1, "partitions": 6, "seconds": size.seconds / 2}
        done = load.raw("everyday", broker.bootstrap, topic="everyday-0", kind=kind, **flags)
        measured[f"cpu {kind}"] = (cpu_s(broker.pid) - before_s) / done["requests"] * 1e6
        measured[f"rate {kind}"] = done["requests_per_s"]
    return measured


def _everyday_metrics() -> dict[str, Metric]:
    metrics = {}
    for kind, text in EVERYDAY.items():
        one = f"{text}, 50 connections, 1 in flight on each"
        metrics[f"cpu {kind}"] = Metric(f"broker CPU: {one}", "µs", None)
        metrics[f"rate {kind}"] = Metric(f"rate: {one}", "/s", None, more_is_better=True)
    return metrics


#: Number of partitions for which each group commits an offset.
LOADED_PARTITIONS_COUNT = 100


def _loaded(size: Size) -> dict[str, int]:
    return {"partitions": LOADED_PARTITIONS_COUNT, "count": size.offsets_loaded // LOADED_PARTITIONS_COUNT}


def prepare_offsets(broker: Broker, size: Size) -> None:
    """Commit offsets of many groups."""
    load.raw("create", broker.bootstrap, topic="loaded", count=1, partitions=LOADED_PARTITIONS_COUNT)
    time.sleep(REBALANCE_WAIT_S)
    load.raw("offsets", broker.bootstrap, topic="loaded-0", depth=16, **_loaded(size))


def load_time(broker: Broker, size: Size) -> Measured:
    """Return the time from the spawn of the process to the first response with the offsets of all groups, in
    seconds.
    """
    broker.restart()
    waited_s = load.raw("loaded", broker.bootstrap, topic="loaded-0", **_loaded(size))["waited_s"]
    return {"time": broker.start_s + waited_s}


#: High enough never to throttle: the cost of accounting is measured.
GENEROUS_QUOTAS = ("producer_byte_rate=1000000000000", "request_percentage=10000")
GUARDED_OPERATIONS = ("create", "write", "describe", "delete")


def prepare_group(broker: Broker, size: Size) -> None:
    """Create a topic that a group shares, and let a first group share it to warm up the JVM."""
    load.raw("create", broker.bootstrap, topic="shared", count=1, partitions=2 * size.group_members)
    rebalance_time(broker, size)


def rebalance_time(broker: Broker, size: Size) -> Measured:
    """Return the time from the start of one more member until a large group is stable again, in milliseconds."""
    flags = {"members": size.group_members, "partitions": 2 * size.group_members}
    done = load.group("settle", broker.bootstrap, topic="shared-0", **flags)
    return {"time": done["settle_s"] * 1e3}


def group_throughput(broker: Broker, size: Size) -> Measured:
    """Return records per second of a consumer in a group, relative to one with assigned partitions."""
    flags = {"partitions": 1, "records": size.records // 2, "rounds": 5}
    done = load.group("consume", broker.bootstrap, topic="fetch-0", **flags)
    return {"share": done["grouped_per_s"] / done["assigned_per_s"]}


def transaction_rate(broker: Broker, size: Size) -> Measured:
    """Return transactions of ten records that one producer commits per second, one after the other."""
    done = load.group("transact", broker.bootstrap, topic="transactions-0", seconds=size.seconds)
    return {"rate": done["transactions_per_s"]}


def prepare_guarded(broker: Broker, size: Size) -> None:
    """If there is an authorizer, create ACLs and quotas that allow the measured requests."""
    operations = [part for operation in GUARDED_OPERATIONS for part in ("--operation", operation)]
    try:
        load.administer(broker.bootstrap, "acls", "add", "--principal", "*", *operations, "--topic", "*")
    except load.LoadFailed:
        pass  # SECURITY_DISABLED: this is the side without an authorizer
    else:
        load.administer(broker.bootstrap, "quotas", "set", "user", *GENEROUS_QUOTAS)
    prepare_topic(broker, size, "requests")


def guarded_cpu(broker: Broker, size: Size) -> Measured:
    """Return broker CPU per record of the Java producer, and per one-record request, in microseconds."""
    measured = produce_cpu(broker, size, 1024, "acks=all")
    before_s = cpu_s(broker.pid)
    flags = {"connections": 10, "depth": 16, "seconds": size.seconds, "partitions": 8}
    done = load.raw("produce", broker.bootstrap, topic="requests-0", **flags)
    requests_count = done["requests_per_s"] * size.seconds
    return {**measured, "request": (cpu_s(broker.pid) - before_s) / requests_count * 1e6}


def prepare_plan(broker: Broker, size: Size) -> None:
    """Create the declared topics."""
    planning.create(broker.bootstrap, size.topics_planned)


def plan(broker: Broker, size: Size) -> Measured:
    """Return the time in seconds and peak memory in MiB of `barnabas plan` over many topics."""
    return planning.plans(broker.bootstrap, size.topics_planned)


def prepare_mixture(broker: Broker, _size: Size) -> None:
    """Create the topics that the mixture writes to."""
    mixture.prepare(broker.bootstrap)
    time.sleep(REBALANCE_WAIT_S)


def requests(broker: Broker, size: Size) -> Measured:
    """Measure one-record Produce requests in all shapes."""
    return mixture.measure(broker.bootstrap, broker.pid, size.seconds / 2)


def _mixture_metrics() -> dict[str, Metric]:
    metrics = {
        "cpu": Metric("broker CPU per one-record request, as many of each shape below", "µs", 0.4),
        "rate": Metric("one-record requests, as many of each shape below", "/s", 2.0, more_is_better=True),
    }
    for shape in mixture.SHAPES:
        metrics[f"cpu {shape.name}"] = Metric(f"CPU: {shape.text}", "µs", None)
    for shape in mixture.SHAPES:
        metrics[f"rate {shape.name}"] = Metric(f"rate: {shape.text}", "/s", None, more_is_better=True)
    return metrics


def _produce(name: str, text: str, target: float, record_bytes: int, *properties: str) -> Measure:
    def run(broker: Broker, size: Size) -> Measured:
        return produce_cpu(broker, size, record_bytes, *properties)

    return Measure(name, run, {"cpu": Metric(f"broker CPU per record, {text}", "µs", target)})


MEASURES = (
    _produce("produce-100b", "100 B in 64 KiB batches", 0.3, 100),
    _produce("produce-1kib", "1 KiB, acks=all", 0.4, 1024, "acks=all"),
    _produce("produce-lz4", "1 KiB, acks=all, lz4", 0.5, 1024, "acks=all", "compression.type=lz4"),
    _produce("produce-zstd", "1 KiB, acks=all, zstd", 0.5, 1024, "acks=all", "compression.type=zstd"),
    Measure("requests", requests, _mixture_metrics(), prepare_mixture),
    Measure("everyday", everyday, _everyday_metrics(), prepare_everyday),
    Measure("fetch", fetch_cpu, {"cpu": Metric("broker CPU per GiB fetched", "s", 0.75)}, prepare_fetch),
    Measure(
        "latency",
        latency,
        {
            "p50": Metric("latency p50 at 5,000 records/s", "ms", 1.0),
            "p99": Metric("latency p99 at 5,000 records/s", "ms", 0.8),
        },
        functools.partial(prepare_topic, topic="latency"),
    ),
    Measure(
        "start",
        cold_start,
        {"time": Metric("cold start to the first Metadata answer", "s", 0.3)},
        fresh_broker_each_round=True,
    ),
    Measure(
        "memory",
        memory,
        {
            "idle": Metric("anonymous memory, idle", "MiB", 0.2),
            "loaded": Metric("anonymous memory, loaded", "MiB", 0.2),
        },
        fresh_broker_each_round=True,
    ),
    Measure(
        "create",
        create_rate,
        {"rate": Metric("CreateTopics one after the other", "/s", 5.0, more_is_better=True)},
    ),
    Measure(
        "create-policy",
        create_rate,
        {
            "rate": Metric(
                "CreateTopics one after the other, with a policy on Barnabas only",
                "/s",
                3.0,
                more_is_better=True,
            )
        },
        settings={"barnabas": {"create.topic.policy.class.name": "bench.policies:ThoroughPolicy"}},
    ),
    Measure(
        "metadata",
        metadata_time,
        {"time": Metric("Metadata of 10,000 partitions", "ms", 1.0)},
        prepare_metadata,
    ),
    Measure(
        "describe-configs",
        describe_time,
        {"time": Metric("DescribeConfigs of 1,000 topics", "ms", 0.5)},
        prepare_described,
    ),
    Measure(
        "alter-configs",
        alter_rate,
        {"rate": Metric("IncrementalAlterConfigs one after the other", "/s", 3.0, more_is_better=True)},
        functools.partial(prepare_topic, topic="altered"),
    ),
    Measure(
        "group-settle",
        rebalance_time,
        {"time": Metric("a group of 100 members on 200 partitions settles after one joins", "ms", 1.0)},
        prepare_group,
    ),
    Measure(
        "group-consume",
        group_throughput,
        {
            "share": Metric(
                "consumer throughput in a group / with assigned partitions", "", 0.98, more_is_better=True
            )
        },
        prepare_fetch,
    ),
    Measure(
        "transactions",
        transaction_rate,
        {"rate": Metric("transactions of one producer, 10 records each", "/s", 1.5, more_is_better=True)},
        functools.partial(prepare_topic, topic="transactions"),
    ),
    Measure(
        "offset-commits",
        commit_rate,
        {
            "rate": Metric(
                "offset commits of one partition, 10 connections, 16 in flight on each",
                "/s",
                3.0,
                more_is_better=True,
            ),
            "waiting": Metric(
                "offset commits of one partition, 50 connections, 1 in flight on each",
                "/s",
                0.8,
                more_is_better=True,
            ),
        },
        functools.partial(prepare_topic, topic="committed"),
    ),
    Measure(
        "offsets-load",
        load_time,
        {"time": Metric("start with 1,000,000 committed offsets, until all are served", "s", 1.0)},
        prepare_offsets,
    ),
    Measure(
        "audit",
        create_time,
        {"time": Metric("CreateTopics one after the other, with the audit", "ms", 1.2)},
        settings={"plain": {"barnabas.audit.enable": "false"}},
        against_itself=True,
    ),
    Measure(
        "guarded",
        guarded_cpu,
        {
            "cpu": Metric("broker CPU per record, 1 KiB, acks=all, with authorizer and quotas", "µs", 1.1),
            "request": Metric("broker CPU per one-record request, with authorizer and quotas", "µs", 1.1),
        },
        prepare_guarded,
        settings={
            "barnabas": {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found": "true",
            }
        },
        against_itself=True,
    ),
    Measure(
        "plan",
        plan,
        {
            "same_time": Metric(
                "`barnabas plan` over 10,000 topics of one partition, nothing to do", "s", 1.0
            ),
            "same_memory": Metric("the same, memory of the command", "MiB", None),
            "changed_time": Metric(
                "`barnabas plan` over 10,000 topics of one partition, each with a change", "s", 1.0
            ),
            "changed_memory": Metric("the same, memory of the command", "MiB", None),
        },
        prepare_plan,
    ),
)
