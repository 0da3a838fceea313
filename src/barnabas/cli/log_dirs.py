"""`barnabas log-dirs`: describe log directories, move replicas between them."""

from collections.abc import Collection, Mapping
from typing import Annotated

import typer

from barnabas.base.ids import TopicPartition
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, Wait
from barnabas.cli.support.output import print_json, print_table
from barnabas.cli.support.partitions import expand_partitions, parse_partition, print_results
from barnabas.cli.support.waiting import until_done
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.log_dirs import LogDirDescription
from barnabas.wire.errors import KafkaError

_DIRECTORY_COLUMNS = ("broker", "directory", "state", "total bytes", "usable bytes", "replicas", "bytes")
_REPLICA_COLUMNS = ("broker", "directory", "replica", "bytes", "lag", "state")

Descriptions = Mapping[int, list[LogDirDescription]]


@command(
    "describe",
    example="log-dirs describe --broker 1",
    apis=("DescribeLogDirs",),
    needs=("describe cluster",),
)
def describe_log_dirs(
    partition_args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC[:PARTITION]...]",
            help="Partitions to show (default: all).",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    broker: Annotated[
        int | None, typer.Option("--broker", metavar="ID", help="Id of the broker (default: all brokers).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show log directories, the space on their volumes, and their replicas."""
    partitions = None if partition_args is None else [parse_partition(text) for text in partition_args]

    async def fetch(admin: Admin) -> Descriptions:
        tps = (
            None
            if partitions is None
            else list(await expand_partitions(admin, [(partition, None) for partition in partitions]))
        )
        brokers = sorted(admin.cluster.metadata.nodes) if broker is None else [broker]
        return {node: await admin.describe_log_dirs(node, tps) for node in brokers}

    log_dirs = _flatten(with_admin(bootstrap, fetch))
    if as_json:
        print_json([_as_json(node, log_dir) for node, log_dir in log_dirs])
        return
    print_table(_DIRECTORY_COLUMNS, [_directory_row(node, log_dir) for node, log_dir in log_dirs])
    rows = [
        (
            node,
            log_dir.path,
            tp,
            replica.size_bytes,
            replica.offset_lag,
            "future" if replica.is_future else "",
        )
        for node, log_dir in log_dirs
        for tp, replica in sorted(log_dir.replicas.items())
    ]
    if rows:
        print()
        print_table(_REPLICA_COLUMNS, rows)


def _flatten(descriptions: Descriptions) -> list[tuple[int, LogDirDescription]]:
    return [(node, log_dir) for node, log_dirs in descriptions.items() for log_dir in log_dirs]


def _directory_row(node: int, log_dir: LogDirDescription) -> tuple[object, ...]:
    size_bytes = sum(replica.size_bytes for replica in log_dir.replicas.values())
    return (
        node,
        log_dir.path,
        _state(log_dir),
        _format_size(log_dir.total_bytes),
        _format_size(log_dir.usable_bytes),
        len(log_dir.replicas),
        size_bytes,
    )


def _state(log_dir: LogDirDescription) -> str:
    if log_dir.error is not None:
        return f"offline ({log_dir.error.code.name})"
    return "cordoned" if log_dir.is_cordoned else "online"


def _format_size(size_bytes: int) -> int | str:
    return "?" if size_bytes < 0 else size_bytes


def _as_json(node: int, log_dir: LogDirDescription) -> dict[str, object]:
    return {
        "broker": node,
        "directory": log_dir.path,
        "error": None if log_dir.error is None else log_dir.error.code.name,
        "cordoned": log_dir.is_cordoned,
        "total_bytes": log_dir.total_bytes,
        "usable_bytes": log_dir.usable_bytes,
        "replicas": [
            {"topic": tp.topic, "partition": tp.partition, **replica._asdict()}
            for tp, replica in sorted(log_dir.replicas.items())
        ],
    }


@command(
    "move",
    example="log-dirs move /disk2/kafka orders:0 --wait 600",
    apis=("AlterReplicaLogDirs",),
    needs=("alter cluster",),
)
def move_replicas(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIRECTORY",
            help="Path of the new directory, as in log.dirs of the broker.",
            autocompletion=candidates.log_dirs,
        ),
    ],
    partition_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="Partitions whose replicas are moved.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    broker: Annotated[
        int | None,
        typer.Option(
            "--broker", metavar="ID", help="Id of the broker; required if there are several brokers."
        ),
    ] = None,
    wait_s: Wait = None,
    as_json: Json = False,
) -> None:
    """Start moving replicas of a broker to another of its log directories; 'describe' shows the progress."""
    partitions = [parse_partition(text) for text in partition_args]

    async def move(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        tps = await expand_partitions(admin, [(partition, directory) for partition in partitions])
        node = _only_broker(admin) if broker is None else broker
        errors = await admin.alter_replica_log_dirs(node, tps)
        started = {tp for tp, error in errors.items() if error is None}

        async def remaining() -> int:
            return _remaining_records(await admin.describe_log_dirs(node, started), directory, started)

        if wait_s is not None and started:
            await until_done(admin.cluster, remaining, wait_s, f"moves to {directory}")
        return errors

    results = {
        tp: error and KafkaError(error.code, f"{tp} cannot be moved to {directory}")
        for tp, error in with_admin(bootstrap, move).items()
    }
    status = "moving to" if wait_s is None else "moved to"
    print_results(results, f"{status} {directory}", {}, as_json=as_json)


def _remaining_records(
    log_dirs: list[LogDirDescription], directory: str, tps: Collection[TopicPartition]
) -> int:
    """Return the number of records to copy until `tps` are in the directory; at least one for each that is not."""
    remaining = dict.fromkeys(tps, 1)
    for log_dir in log_dirs:
        for tp in remaining.keys() & log_dir.replicas.keys():
            replica = log_dir.replicas[tp]
            if replica.is_future:
                remaining[tp] = max(1, replica.offset_lag)
            elif log_dir.path == directory:
                remaining[tp] = 0
    return sum(remaining.values())


def _only_broker(admin: Admin) -> int:
    """Return the id of the only broker.

    :raises CommandError: If there are several brokers.
    """
    nodes = admin.cluster.metadata.nodes
    if len(nodes) != 1:
        raise wrong_use(f"--broker is required: one of {', '.join(map(str, sorted(nodes)))}")
    return next(iter(nodes))


app = command_group(describe_log_dirs, move_replicas)
