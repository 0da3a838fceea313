"""What is measured, by how clients connect."""

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
    SecurityMode,
    Site,
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

DATA_MODES = (PLAINTEXT, SCRAM, TLS, MUTUAL, TLS_SCRAM)
FETCH_MODES = (PLAINTEXT, TLS, TLS_1_2)
CONNECTION_MODES = (PLAINTEXT, SCRAM, TLS, TLS_1_2, RSA, MUTUAL)

#: Requests of many clients that wait for few answers, and of few that wait for one.
SHAPES = tuple(shape for shape in mixture.SHAPES if shape.name in ("fifty-5", "ten-1"))

#: Clients that connect at the same time.
CLIENTS_COUNT = 50

_networks = itertools.cycle(range(100, 200))


def target_of(mode: SecurityMode) -> float | None:
    return TARGET if mode.is_encrypted else None


# Produce


def batches(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per record in microseconds: of 100 B with TLS, and of 1 KiB in every mode."""
    return {
        f"100 B {TLS.text}": batch_cpu(site, broker, size, TLS, 100),
        **{f"1 KiB {mode.text}": batch_cpu(site, broker, size, mode, 1024) for mode in DATA_MODES},
    }


def batch_cpu(site: Site, broker: Broker, size: Size, mode: SecurityMode, record_bytes: int) -> float:
    return cpu_per_record(
        broker,
        size.records_of(record_bytes),
        record_bytes,
        "acks=all",
        ROUND_ROBIN,
        address=address(broker, mode),
        partitions_count=PARTITIONS_COUNT,
        config=site.client_config(mode),
    )


def batch_metrics() -> dict[str, Metric]:
    keys = f"acks=all, over {PARTITIONS_COUNT} partitions"
    small = Metric(f"broker CPU per record of 100 B, {keys}, {TLS.text}", "µs", TARGET)
    return {
        f"100 B {TLS.text}": small,
        **{
            f"1 KiB {mode.text}": Metric(
                f"broker CPU per record of 1 KiB, {keys}, {mode.text}", "µs", target_of(mode)
            )
            for mode in DATA_MODES
        },
    }


def prepare_requests(broker: Broker, size: Size) -> None:
    prepare_user(broker, size)
    mixture.prepare(broker.bootstrap)
    time.sleep(REBALANCE_WAIT_S)


def requests(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per one-record request in every mode, in microseconds."""
    return {mode.text: request_cpu(site, broker, size, mode) for mode in DATA_MODES}


def request_cpu(site: Site, broker: Broker, size: Size, mode: SecurityMode) -> float:
    where, seconds = address(broker, mode), size.seconds / len(SHAPES)
    return mixture.measure(where, broker.pid, seconds, SHAPES, **site.flags(mode))["cpu"]


def request_metrics() -> dict[str, Metric]:
    return {
        mode.text: Metric(f"broker CPU per one-record request, {mode.text}", "µs", None)
        for mode in DATA_MODES
    }


# Fetch


def fetches(site: Site, broker: Broker, size: Size) -> Measured:
    """Return broker CPU per GiB fetched, in seconds."""
    return {
        mode.text: fetch_cpu(broker, size, address(broker, mode), **site.flags(mode))["cpu"]
        for mode in FETCH_MODES
    }


def fetch_metrics() -> dict[str, Metric]:
    return {
        mode.text: Metric(f"broker CPU per GiB fetched, {mode.text}", "s", target_of(mode))
        for mode in FETCH_MODES
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
    for mode in CONNECTION_MODES:
        flags = {"connections": CLIENTS_COUNT, "network": next(_networks), "seconds": size.seconds / 2}
        before_s = cpu_s(broker.pid)
        done = load.raw("connect", address(broker, mode), **flags, **site.flags(mode))
        measured[f"cpu {mode.text}"] = (cpu_s(broker.pid) - before_s) / done["connections"] * 1e6
        measured[f"rate {mode.text}"] = done["connections_per_s"]
    return measured


def connection_metrics() -> dict[str, Metric]:
    what = {
        mode.text: f"full handshake, {mode.text}" if mode.is_encrypted else mode.text
        for mode in CONNECTION_MODES
    }
    cpu = {
        f"cpu {mode}": Metric(f"broker CPU per connection: {text}", "µs", None) for mode, text in what.items()
    }
    rate = {
        f"rate {mode}": Metric(
            f"connections, one after the other by {CLIENTS_COUNT} clients: {text}",
            "/s",
            None,
            more_is_better=True,
        )
        for mode, text in what.items()
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
