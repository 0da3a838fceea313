"""`barnabas groups offsets`, `reset-offsets` and `delete-offsets`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.groups.options import GroupId
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import NOT_FOUND, CommandError, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.partitions import PartitionArg, expand_partitions, parse_partition, print_results
from barnabas.cli.support.times import parse_time_ms
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.offset_resets import reset_offsets
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec
from barnabas.client.consumer.consumer import Start
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.group_lags import PartitionLag, lags_of, lags_of_partitions, total_lag
from barnabas.wire.errors import ErrorCode, KafkaError

_COLUMNS = ("partition", "committed", "end", "lag", "metadata")
_UNKNOWN = "unknown"

PartitionArgs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC[:PARTITION]...]",
        help="Partitions (default: all that the group reads).",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@command(
    "offsets",
    example="groups offsets billing orders",
    apis=("OffsetFetch", "ListOffsets", "DescribeGroups", "ConsumerGroupDescribe"),
    needs=("describe group", "describe topic"),
)
def show_offsets(
    name: GroupId,
    partition_args: PartitionArgs = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the committed offset and the lag of every partition that a group reads."""
    partitions = None if partition_args is None else [parse_partition(text) for text in partition_args]
    lags = with_cluster(bootstrap, lambda cluster: _lags(cluster, name, partitions))
    if as_json:
        print_json([_as_json(lag) for lag in lags])
        return
    rows = [_row(lag) for lag in lags]
    if len(lags) > 1:
        rows.append(("total", "", "", str(total_lag(lags)), ""))
    print_table(_COLUMNS, rows)
    if any(lag.committed is None and lag.lag is None for lag in lags):
        notice("Without a committed offset, the lag depends on auto.offset.reset of the group's consumers.")


async def _lags(
    cluster: ClusterClient, name: str, partitions: Sequence[PartitionArg] | None
) -> Sequence[PartitionLag]:
    tps = await _expand(cluster, partitions)
    if tps is not None:
        return await lags_of_partitions(cluster, name, tps)
    lags = (await lags_of(cluster, [name]))[name]
    if isinstance(lags, KafkaError):
        raise lags
    return lags


def _row(lag: PartitionLag) -> tuple[object, ...]:
    return (
        lag.tp,
        "-" if lag.committed is None else lag.committed.offset,
        _UNKNOWN if lag.end is None else lag.end,
        _UNKNOWN if lag.lag is None else lag.lag,
        "" if lag.committed is None else lag.committed.metadata,
    )


def _as_json(lag: PartitionLag) -> dict[str, object]:
    committed = lag.committed
    return {
        **lag.tp._asdict(),
        "committed": None if committed is None else committed.offset,
        "leader_epoch": None if committed is None else committed.leader_epoch,
        "metadata": None if committed is None else committed.metadata,
        "end": lag.end,
        "lag": lag.lag,
    }


@command(
    "reset-offsets",
    example="groups reset-offsets billing orders --to-time 1h --dry-run",
    apis=("OffsetCommit",),
    needs=("read group", "read topic"),
)
def reset_group_offsets(
    name: GroupId,
    partition_args: PartitionArgs = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="The first offset of each partition.")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The end of each partition.")] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="This offset, clamped to the range of the log.")
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option(
            "--to-time",
            metavar="TIME",
            help="The first record from this time on: 2026-01-31T09:30, 1767225600000 or 10m (10 minutes ago).",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the offsets without committing them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reset the committed offsets of a group that has no members."""
    partitions = None if partition_args is None else [parse_partition(text) for text in partition_args]
    target = _target(earliest=to_earliest, latest=to_latest, offset=to_offset, time=to_time)

    async def reset(cluster: ClusterClient) -> dict[TopicPartition, int]:
        tps = await _expand(cluster, partitions or None)
        committed = await _committed(cluster, name, tps)
        current = {tp: committed[tp].offset if tp in committed else None for tp in tps or committed}
        offsets = await reset_offsets(cluster, current, target) if current else {}
        if offsets and not dry_run:
            await _commit(cluster, name, offsets)
        return offsets

    offsets = with_cluster(bootstrap, reset)
    if not offsets:
        message = f"group '{name}' has no committed offsets"
        raise CommandError(message, hint="specify the topics to commit offsets for", exit_code=NOT_FOUND)
    if as_json:
        print_json([tp._asdict() | {"offset": offset} for tp, offset in sorted(offsets.items())])
    else:
        print_table(("partition", "offset"), sorted(offsets.items()))


def _target(*, earliest: bool, latest: bool, offset: int | None, time: str | None) -> Start:
    """Return the target position of a reset.

    :raises CommandError: Unless exactly one option is given.
    """
    if [earliest, latest, offset is not None, time is not None].count(True) != 1:
        raise wrong_use("exactly one of --to-earliest, --to-latest, --to-offset and --to-time is required")
    if offset is not None:
        return offset
    if time is not None:
        return OffsetSpec.at(parse_time_ms(time, SystemClock().wall_ms()))
    return EARLIEST if earliest else LATEST


async def _committed(
    cluster: ClusterClient, name: str, tps: Sequence[TopicPartition] | None
) -> dict[TopicPartition, OffsetAndMetadata]:
    offsets = await Groups(cluster).offsets(name, tps)
    if not offsets and tps is None:  # Kafka returns no offsets for unknown groups, too
        raise_errors((await Groups(cluster).describe([name])).values())
    raise_errors(offsets.values())
    return {tp: committed for tp, committed in offsets.items() if isinstance(committed, OffsetAndMetadata)}


async def _commit(cluster: ClusterClient, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    errors = await Groups(cluster).commit_offsets(name, offsets)
    if any(error and error.code is ErrorCode.UNKNOWN_MEMBER_ID for error in errors.values()):
        message = f"group '{name}' has members, which commit offsets themselves"
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, message)
    raise_errors(errors.values())


@command(
    "delete-offsets",
    example="groups delete-offsets billing orders:0",
    apis=("OffsetDelete",),
    needs=("delete group", "read topic"),
)
def delete_offsets(
    name: GroupId,
    partition_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="Partitions whose committed offsets are deleted.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Delete committed offsets of a group for topics that it is not subscribed to."""
    partitions = [parse_partition(text) for text in partition_args]

    async def delete(cluster: ClusterClient) -> Mapping[TopicPartition, KafkaError | None]:
        return await Groups(cluster).delete_offsets(name, await _expand(cluster, partitions) or ())

    print_results(with_cluster(bootstrap, delete), "deleted", {}, as_json=as_json)


async def _expand(
    cluster: ClusterClient, partitions: Iterable[PartitionArg] | None
) -> list[TopicPartition] | None:
    if partitions is None:
        return None
    return list(await expand_partitions(Admin(cluster), [(partition, None) for partition in partitions]))
