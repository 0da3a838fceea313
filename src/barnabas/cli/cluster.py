"""`barnabas cluster`: the status of the cluster."""

import time
from collections.abc import Iterator
from typing import Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.base.plurals import plural
from barnabas.base.store_member import StoreMember
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import FAILED
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json, print_table
from barnabas.cli.support.times import format_timestamp
from barnabas.client.admin.extensions.cluster_status import (
    BrokerStatus,
    ClusterStatus,
    UnhealthyPartition,
)
from barnabas.client.admin.status import describe_cluster_status
from barnabas.client.core.errors import BrokerConnectionError, is_retriable_elsewhere
from barnabas.wire.errors import KafkaError

#: A paused broker accepts connections, and delays the command by this.
REQUEST_TIMEOUT_MS = 5_000

#: How often the status is read until the cluster is healthy.
POLL_S = 1.0

#: Unhealthy partitions in the table; --json prints all.
PARTITIONS_MAX = 20

_BROKER_COLUMNS = ("broker", "address", "rack", "version", "state", "session", "epoch", "since")
_LOAD_COLUMNS = (
    "broker",
    "revision",
    "metadata",
    "leaders",
    "replicas",
    "log bytes",
    "bytes in/s",
    "bytes out/s",
)
_STORE_COLUMNS = ("metadata store", "name", "role", "version", "bytes")
_PARTITION_COLUMNS = ("partition", "state", "leader", "replicas", "isr", "min isr")


@command(
    "status",
    example="cluster status",
    apis=("DescribeClusterStatus", "DescribeCluster", "Metadata"),
    needs=("describe cluster", "describe topic", "describe-configs topic"),
)
def show_status(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    wait_s: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="Wait until the cluster is healthy, at most this many seconds.",
            show_default=False,
        ),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Show brokers, their metadata and load, and unhealthy partitions.

    Exits with 1 if something is wrong: a broker is fenced or does not respond, its metadata is different or behind, a
    member of the metadata store is unavailable, or partitions are offline, under min.insync.replicas or
    under-replicated. Topics that the principal may not describe are left out. Brokers other than Barnabas do not report
    all of it.
    """
    status = _wait_until_healthy(bootstrap, wait_s)
    if as_json:
        print_json(status_json(status))
    else:
        _print_status(status)
    if status.problems:
        raise typer.Exit(FAILED)


def _wait_until_healthy(bootstrap: str, wait_s: float) -> ClusterStatus:
    """Return the status when the cluster is healthy, or the last one; brokers may not respond meanwhile."""
    clock = SystemClock()
    end_ms = clock.monotonic_ms() + wait_s * 1_000
    while True:
        is_last = clock.monotonic_ms() >= end_ms
        try:
            status = with_cluster(bootstrap, describe_cluster_status, REQUEST_TIMEOUT_MS)
        except (BrokerConnectionError, KafkaError) as error:
            if is_last or not is_retriable_elsewhere(error):
                raise
        else:
            if is_last or not status.problems:
                return status
        time.sleep(POLL_S)


def _print_status(status: ClusterStatus) -> None:
    print(", ".join(_head(status)))
    print_table(_BROKER_COLUMNS, [broker_row(broker) for broker in status.brokers])
    print()
    print_table(_LOAD_COLUMNS, [load_row(broker) for broker in status.brokers])
    if status.store_members:
        print()
        print_table(_STORE_COLUMNS, [_store_row(member) for member in status.store_members])
    if status.unhealthy:
        print()
        print_table(
            _PARTITION_COLUMNS, [_partition_row(partition) for partition in status.unhealthy[:PARTITIONS_MAX]]
        )
        further_count = len(status.unhealthy) - PARTITIONS_MAX
        if further_count > 0:
            print(f"and {further_count} more: see 'barnabas topics partitions --unhealthy'")
    print()
    print("\n".join(status.problems) or "healthy")


def _head(status: ClusterStatus) -> Iterator[str]:
    yield f"cluster {status.cluster_id}"
    yield f"controller {status.controller_id}"
    if status.store is not None:
        yield f"metadata store {status.store} at revision {status.revision}"
    yield plural(status.partitions_count, "partition")


def broker_row(broker: BrokerStatus) -> tuple[object, ...]:
    session = {True: "open", False: "none", None: "?"}[broker.has_session]
    return (
        broker.node_id,
        broker.address,
        broker.rack or "",
        _known(broker.software_version),
        broker.state,
        session,
        _known(broker.epoch),
        _known(format_timestamp(broker.since_ms) or None),
    )


def load_row(broker: BrokerStatus) -> tuple[object, ...]:
    return (
        broker.node_id,
        _known(broker.revision),
        broker.metadata_state,
        broker.leaders_count,
        broker.replicas_count,
        _known(broker.log_bytes),
        _known(broker.in_bytes_per_second),
        _known(broker.out_bytes_per_second),
    )


def _store_row(member: StoreMember) -> tuple[object, ...]:
    return (
        member.address,
        member.name,
        member.role or "unavailable",
        member.version or "?",
        _known(member.size_bytes),
    )


def _partition_row(partition: UnhealthyPartition) -> tuple[object, ...]:
    return (
        f"{partition.topic}-{partition.partition}",
        ", ".join(partition.states),
        "none" if partition.leader is None else partition.leader,
        ",".join(map(str, partition.replicas)),
        ",".join(map(str, partition.isr)),
        _known(partition.min_isr),
    )


def _known(value: object | None) -> object:
    return "?" if value is None else value


def status_json(status: ClusterStatus) -> dict[str, object]:
    """Return all of a status."""
    return {
        "healthy": not status.problems,
        "problems": status.problems,
        "cluster_id": status.cluster_id,
        "controller_id": status.controller_id,
        "metadata_store": status.store,
        "metadata_store_members": [member._asdict() for member in status.store_members],
        "metadata_revision": status.revision,
        "brokers": [_broker_json(broker, status.controller_id) for broker in status.brokers],
        "partitions": status.partitions_count,
        "offline_partitions": status.offline_count,
        "under_min_isr_partitions": status.under_min_isr_count,
        "under_replicated_partitions": status.under_replicated_count,
        "unhealthy_partitions": [
            {**partition._asdict(), "states": partition.states} for partition in status.unhealthy
        ],
    }


def _broker_json(broker: BrokerStatus, controller_id: int) -> dict[str, object]:
    return {
        "broker": broker.node_id,
        "host": broker.address.host,
        "port": broker.address.port,
        "rack": broker.rack,
        "controller": broker.node_id == controller_id,
        "version": broker.software_version,
        "state": broker.state,
        "unreachable_reason": broker.reason or None,
        "session": broker.has_session,
        "epoch": broker.epoch,
        "since_ms": broker.since_ms,
        "metadata_revision": broker.revision,
        "metadata_hash": broker.metadata_hash,
        "metadata_state": broker.metadata_state,
        "leaders": broker.leaders_count,
        "replicas": broker.replicas_count,
        "log_bytes": broker.log_bytes,
        "in_bytes_per_second": broker.in_bytes_per_second,
        "out_bytes_per_second": broker.out_bytes_per_second,
    }


app = command_group(show_status)
