"""What is measured, by the way in which clients connect."""

import functools
import itertools
import time
from collections.abc import Callable, Sequence

from interop.brokers import Broker

from barnabas.client.blocking import BlockingClient
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from bench import acl_decisions, load, mixture
from bench.measures import (
    REBALANCE_WAIT_S,
    Measure,
    Measured,
    Metric,
    Size,
    fetch_cpu,
    latency,
    prepare_fetch,
    prepare_topic,
)
from bench.process import cpu_s
from bench.producing import cpu_per_record
from bench.tls.listeners import (
    MUTUAL,
    PLAINTEXT,
    RSA,
    SCRAM,
    TLS,
    TLS_1_2,
    TLS_SCRAM,
    Site,
    Way,
    address,
    prepare_user,
)

FULL = Size(600_000, 3.0, 2.0, 0, 0, 0, 0, 0, 0, 0, 0)
QUICK = Size(40_000, 0.5, 0.1, 0, 0, 0, 0, 0, 0, 0, 0)

#: The ratio to Kafka that CPU per record and per GiB must reach with TLS.
TARGET = 0.6

#: The Java producer sends its records to one partition after the other, like keys over as many partitions.
PARTITIONS_COUNT = 24
ROUND_ROBIN = "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner"

DATA_WAYS = (PLAINTEXT, SCRAM, TLS, MUTUAL, TLS_SCRAM)
FETCH_WAYS = (PLAINTEXT, TLS, TLS_1_2)
CONNECTION_WAYS = (PLAINTEXT, SCRAM, TLS, TLS_1_2, RSA, MUTUAL)

#: Requests of many clients that wait for few answers, and of few that wait for one.
SHAPES = tuple(shape for shape in mixture.SHAPES if shape.name in ("fifty-5", "ten-1"))

#: Clients that connect at the same time.
CLIENTS_COUNT = 50

_networks = itertools.cycle(range(100, 200))


def target_of(way: Way) -> float | None:
    return TARGET if way.is_encrypted else None


# Produce


def batches(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per record in microseconds: of 100 B with TLS, and of 1 KiB in every way."""
    return {
        f"100 B {TLS.text}": batch_cpu(site, broker, size, TLS, 100),
        **{f"1 KiB {way.text}": batch_cpu(site, broker, size, way, 1024) for way in DATA_WAYS},
    }


def batch_cpu(site: Site, broker: Broker, size: Size, way: Way, record_bytes: int) -> float:
    return cpu_per_record(
        broker,
        size.records_of(record_bytes),
        record_bytes,
        "acks=all",
        ROUND_ROBIN,
        address=address(broker, way),
        partitions_count=PARTITIONS_COUNT,
        config=site.client_config(way),
    )


def batch_metrics() -> dict[str, Metric]:
    keys = f"acks=all, over {PARTITIONS_COUNT} partitions"
    small = Metric(f"broker CPU per record of 100 B, {keys}, {TLS.text}", "µs", TARGET)
    return {
        f"100 B {TLS.text}": small,
        **{
            f"1 KiB {way.text}": Metric(
                f"broker CPU per record of 1 KiB, {keys}, {way.text}", "µs", target_of(way)
            )
            for way in DATA_WAYS
        },
    }


def prepare_requests(broker: Broker, size: Size) -> None:
    prepare_user(broker, size)
    mixture.prepare(broker.bootstrap)
    time.sleep(REBALANCE_WAIT_S)


def requests(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per one-record request in every way, in microseconds."""
    return {way.text: request_cpu(site, broker, size, way) for way in DATA_WAYS}


def request_cpu(site: Site, broker: Broker, size: Size, way: Way) -> float:
    where, seconds = address(broker, way), size.seconds / len(SHAPES)
    return mixture.measure(where, broker.pid, seconds, SHAPES, **site.flags(way))["cpu"]


def request_metrics() -> dict[str, Metric]:
    return {
        way.text: Metric(f"broker CPU per one-record request, {way.text}", "µs", None) for way in DATA_WAYS
    }


# Fetch


def fetches(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per GiB fetched, in seconds."""
    return {
        way.text: fetch_cpu(broker, size, address(broker, way), **site.flags(way))["cpu"]
        for way in FETCH_WAYS
    }


def fetch_metrics() -> dict[str, Metric]:
    return {
        way.text: Metric(f"broker CPU per GiB fetched, {way.text}", "s", target_of(way)) for way in FETCH_WAYS
    }


# Latency

LATENCY_METRICS = {
    "p50": Metric(f"latency p50 at 5,000 records/s, {TLS.text}", "ms", None),
    "p99": Metric(f"latency p99 at 5,000 records/s, {TLS.text}", "ms", None),
}


def tls_latency(site: Site, broker: Broker, size: Size) -> Measured:
    return latency(broker, size, address(broker, TLS), **site.flags(TLS))


# Connections


def connections(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per connection in microseconds, and connections per second: handshake, login, ApiVersions."""
    measured = {}
    for way in CONNECTION_WAYS:
        flags = {"connections": CLIENTS_COUNT, "network": next(_networks), "seconds": size.seconds / 2}
        before_s = cpu_s(broker.pid)
        done = load.raw("connect", address(broker, way), **flags, **site.flags(way))
        measured[f"cpu {way.text}"] = (cpu_s(broker.pid) - before_s) / done["connections"] * 1e6
        measured[f"rate {way.text}"] = done["connections_per_s"]
    return measured


def connection_metrics() -> dict[str, Metric]:
    what = {
        way.text: f"full handshake, {way.text}" if way.is_encrypted else way.text for way in CONNECTION_WAYS
    }
    cpu = {
        f"cpu {way}": Metric(f"broker CPU per connection: {text}", "µs", None) for way, text in what.items()
    }
    rate = {
        f"rate {way}": Metric(
            f"connections, one after the other by {CLIENTS_COUNT} clients: {text}",
            "/s",
            None,
            more_is_better=True,
        )
        for way, text in what.items()
    }
    return cpu | rate


# ACLs

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}

ACLS_IN_A_REQUEST = 500
ACL_METRICS = {
    "batch": Metric("broker CPU per record of 1 KiB, with authorizer and 10,000 ACLs", "µs", 1.1),
    "request": Metric("broker CPU per one-record request, with authorizer and 10,000 ACLs", "µs", 1.1),
}


def acls() -> list[AclBinding]:
    """Return 10,000 ACLs of other users, and some that allow what is measured."""
    allowed = [
        AclBinding(
            ResourceType.TOPIC,
            prefix,
            PatternType.PREFIXED,
            "User:ANONYMOUS",
            "*",
            operation,
            AclPermission.ALLOW,
        )
        for prefix in ("produce", "mixture")
        for operation in (AclOperation.CREATE, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DELETE)
    ]
    return acl_decisions.bindings() + allowed


def prepare_acls(broker: Broker, _size: Size) -> None:
    """Create the ACLs, if there is an authorizer."""
    mixture.prepare(broker.bootstrap)
    with BlockingClient(broker.bootstrap) as client:
        for start in range(0, len(acls()), ACLS_IN_A_REQUEST):
            outcomes = client.admin.create_acls(acls()[start : start + ACLS_IN_A_REQUEST])
            failures = {outcome.code for outcome in outcomes if outcome is not None}
            if failures == {ErrorCode.SECURITY_DISABLED}:
                return
            assert not failures, failures


def authorized(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per record of 1 KiB, and per one-record request, without encryption, in microseconds."""
    return {
        "batch": batch_cpu(site, broker, size, PLAINTEXT, 1024),
        "request": request_cpu(site, broker, size, PLAINTEXT),
    }


def measures(site: Site) -> Sequence[Measure]:
    """Return the measures, whose clients have the files of a site."""

    def of(run: Callable[[Site, Broker, Size], Measured]) -> Callable[[Broker, Size], Measured]:
        return functools.partial(run, site)

    return (
        Measure("batches", of(batches), batch_metrics(), prepare_user),
        Measure("requests", of(requests), request_metrics(), prepare_requests),
        Measure("fetch", of(fetches), fetch_metrics(), prepare_fetch),
        Measure(
            "latency", of(tls_latency), LATENCY_METRICS, functools.partial(prepare_topic, topic="latency")
        ),
        Measure("connections", of(connections), connection_metrics(), prepare_user),
        Measure(
            "acls",
            of(authorized),
            ACL_METRICS,
            prepare_acls,
            settings={"barnabas": AUTHORIZER},
            against_itself=True,
        ),
    )
