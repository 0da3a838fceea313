"""`barnabas records`: show the offsets of partitions, delete old records."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import REFUSED, CommandError
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import print_json, print_table
from barnabas.cli.support.partitions import expand_partitions, parse_offset, parse_partition
from barnabas.cli.support.times import format_timestamp, parse_time_ms
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.leader_epochs import EpochEnd, list_epoch_ends
from barnabas.client.admin.model import HIGH_WATERMARK
from barnabas.client.admin.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, ListedOffset, OffsetSpec
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation

Partitions = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC[:PARTITION]...",
        help="Partitions to show.",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]
OffsetsOrErrors = Mapping[TopicPartition, ListedOffset | KafkaError]


class _Columns(NamedTuple):
    """The listed offsets of partitions, by column of the table."""

    earliest: OffsetsOrErrors
    latest: OffsetsOrErrors
    newest: OffsetsOrErrors  #: the record with the greatest timestamp
    at_time: OffsetsOrErrors | None


@command(
    "offsets", example="records offsets orders --time 1h", apis=("ListOffsets",), needs=("describe topic",)
)
def show_offsets(
    partition_args: Partitions,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="Also show the first record from this time on: 2026-01-31T09:30, 1767225600000 or 10m.",
        ),
    ] = None,
    committed: Annotated[
        bool,
        typer.Option(
            "--committed",
            help="Show the last stable offset instead of the high watermark (isolation.level=read_committed).",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the first and the end offset of partitions, the newest record, and the first record from a time on."""
    partitions = [parse_partition(text) for text in partition_args]
    at_time = None if time is None else OffsetSpec.at(parse_time_ms(time, SystemClock().wall_ms()))
    isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED

    async def list_offsets(admin: Admin) -> _Columns:
        tps = await expand_partitions(admin, [(partition, None) for partition in partitions])

        async def fetch(spec: OffsetSpec) -> OffsetsOrErrors:
            return await admin.list_offsets(dict.fromkeys(tps, spec), isolation)

        return _Columns(
            await fetch(EARLIEST),
            await fetch(LATEST),
            await fetch(MAX_TIMESTAMP),
            None if at_time is None else await fetch(at_time),
        )

    listed = with_admin(bootstrap, list_offsets)
    offsets = [_as_json(tp, listed) for tp in sorted(listed.earliest) if _is_complete(tp, listed)]
    if as_json:
        print_json(offsets)
    else:
        columns = ("partition", "earliest", "latest", "newest", "newest timestamp")
        rows = [
            (
                f"{row['topic']}-{row['partition']}",
                row["earliest"],
                row["latest"],
                _or_empty(row["newest"]),
                format_timestamp(row["newest_timestamp_ms"]),
                *([] if time is None else [_or_empty(row["at_time"])]),
            )
            for row in offsets
        ]
        print_table(columns if time is None else (*columns, f"from {time} on"), rows)
    raise_all(_first_error(tp, listed) for tp in listed.earliest)


def _row(tp: TopicPartition, listed: _Columns) -> list[ListedOffset | KafkaError]:
    return [column[tp] for column in listed if column is not None]


def _is_complete(tp: TopicPartition, listed: _Columns) -> bool:
    return all(isinstance(cell, ListedOffset) for cell in _row(tp, listed))


def _first_error(tp: TopicPartition, listed: _Columns) -> KafkaError | None:
    return next((cell for cell in _row(tp, listed) if isinstance(cell, KafkaError)), None)


def _as_json(tp: TopicPartition, listed: _Columns) -> dict[str, Any]:
    earliest, latest, newest, *at_time = [cell for cell in _row(tp, listed) if isinstance(cell, ListedOffset)]
    offsets: dict[str, Any] = {
        **tp._asdict(),
        "earliest": earliest.offset,
        "latest": latest.offset,
        "newest": _or_none(newest.offset),
        "newest_timestamp_ms": _or_none(newest.timestamp_ms),
    }
    if at_time:
        offsets["at_time"] = _or_none(at_time[0].offset)
    return offsets


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


def _or_empty(cell: object) -> object:
    return "" if cell is None else cell


@command(
    "epoch-ends",
    example="records epoch-ends orders:0 --epoch 3",
    apis=("OffsetForLeaderEpoch",),
    needs=("describe topic",),
)
def show_epoch_ends(
    partition_args: Partitions,
    epoch: Annotated[int, typer.Option("--epoch", min=0, help="Leader epoch.", show_default=False)],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the end offset of a leader epoch; replicas truncate what they have of that epoch beyond it."""
    partitions = [parse_partition(text) for text in partition_args]

    async def list_ends(admin: Admin) -> Mapping[TopicPartition, EpochEnd | KafkaError]:
        tps = await expand_partitions(admin, [(partition, epoch) for partition in partitions])
        return await list_epoch_ends(admin.cluster, tps)

    results = with_admin(bootstrap, list_ends)
    ends = {tp: end for tp, end in sorted(results.items()) if isinstance(end, EpochEnd)}
    if as_json:
        print_json(
            [
                {
                    **tp._asdict(),
                    "leader_epoch": _or_none(end.leader_epoch),
                    "end_offset": _or_none(end.end_offset),
                }
                for tp, end in ends.items()
            ]
        )
    else:
        rows = [(tp, *(_or_empty(_or_none(number)) for number in end)) for tp, end in ends.items()]
        print_table(("partition", "leader epoch", "end offset"), rows)
    raise_all(results.values())


@command("delete", example="records delete orders:0=1000", apis=("DeleteRecords",), needs=("delete topic",))
def delete_records(
    target_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]=OFFSET...",
            help="Delete the records before this offset; =end deletes all records.",
            autocompletion=candidates.partitions,
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Delete the records before an offset. This cannot be undone."""
    targets = [parse_offset(text) for text in target_args]

    async def delete(admin: Admin) -> Mapping[TopicPartition, int | Exception]:
        offsets = [(partition, HIGH_WATERMARK if offset is None else offset) for partition, offset in targets]
        wanted = await expand_partitions(admin, offsets)
        results = await admin.delete_records(wanted)
        return {tp: await _explain(admin, tp, wanted[tp], result) for tp, result in results.items()}

    results = with_admin(bootstrap, delete)
    start_offsets = {tp: offset for tp, offset in sorted(results.items()) if isinstance(offset, int)}
    if as_json:
        print_json([{**tp._asdict(), "earliest": offset} for tp, offset in start_offsets.items()])
    else:
        for tp, offset in start_offsets.items():
            print(f"{tp}: starts at {offset}")
    raise_all(results.values())


async def _explain(
    admin: Admin, tp: TopicPartition, offset: int, result: int | KafkaError
) -> int | Exception:
    """Return a result with an explanation of its error, because DeleteRecords has no error messages."""
    if not isinstance(result, KafkaError):
        return result
    if result.code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return await _explain_range(admin, tp, offset, result)
    if result.code is not ErrorCode.POLICY_VIOLATION:
        return result
    topic = tp.topic
    message = (
        f"records of {tp} cannot be deleted: cleanup.policy of topic '{topic}' does not contain 'delete'"
    )
    hint = (
        f"produce null values for the keys to remove; or 'barnabas configs set topic {topic} cleanup.policy+=delete', "
        "but then retention.ms and retention.bytes of the topic delete records as well"
    )
    return CommandError(message, hint=hint, exit_code=REFUSED, kind=result.code.name)


async def _explain_range(admin: Admin, tp: TopicPartition, offset: int, error: KafkaError) -> Exception:
    """Return OFFSET_OUT_OF_RANGE with the offsets that are in the range, or as it is if they cannot be read."""
    end = (await admin.list_offsets({tp: LATEST}))[tp]
    if not isinstance(end, ListedOffset):
        return error
    message = f"records of {tp} before {offset} cannot be deleted: the partition ends at {end.offset}"
    hint = f"an offset up to {end.offset}, or {tp.topic}:{tp.partition}=end for all records"
    return CommandError(message, hint=hint, kind=error.code.name)


app = command_group(show_offsets, show_epoch_ends, delete_records)
