"""Implementation of `barnabas records`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import REFUSED, CommandError
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.outcomes import raise_all
from barnabas.cli.work.partitions import expand_partitions
from barnabas.cli.work.times import format_timestamp, parse_time_ms
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.leader_epochs import EpochEnd, list_epoch_ends
from barnabas.client.admin.model import HIGH_WATERMARK
from barnabas.client.admin.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Isolation, ListedOffset, OffsetSpec
from barnabas.wire.errors import ErrorCode, KafkaError

OffsetsOrErrors = Mapping[TopicPartition, ListedOffset | KafkaError]


class _Columns(NamedTuple):
    """The listed offsets of partitions, by column of the table."""

    earliest: OffsetsOrErrors
    latest: OffsetsOrErrors
    newest: OffsetsOrErrors  #: the record with the greatest timestamp
    at_time: OffsetsOrErrors | None


def show_offsets(
    bootstrap: str, partitions: Sequence[PartitionArg], time: str | None, *, committed: bool, as_json: bool
) -> None:
    """Print the first offsets, the end offsets and the newest records of partitions.

    :raises KafkaError: For partitions whose offsets cannot be listed, after the others are printed.
    """
    at_time = None if time is None else OffsetSpec.at(parse_time_ms(time, SystemClock().wall_ms()))
    isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED

    async def work(admin: Admin) -> _Columns:
        tps = await expand_partitions(admin, [(partition, None) for partition in partitions])

        async def fetch(spec: OffsetSpec) -> OffsetsOrErrors:
            return await admin.list_offsets(dict.fromkeys(tps, spec), isolation)

        return _Columns(
            await fetch(EARLIEST),
            await fetch(LATEST),
            await fetch(MAX_TIMESTAMP),
            None if at_time is None else await fetch(at_time),
        )

    listed = with_admin(bootstrap, work)
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


def show_epoch_ends(bootstrap: str, partitions: Sequence[PartitionArg], epoch: int, *, as_json: bool) -> None:
    """Print the end offsets of a leader epoch.

    :raises KafkaError: For partitions whose end offset is not available, after the others are printed.
    """

    async def work(admin: Admin) -> Mapping[TopicPartition, EpochEnd | KafkaError]:
        tps = await expand_partitions(admin, [(partition, epoch) for partition in partitions])
        return await list_epoch_ends(admin.cluster, tps)

    results = with_admin(bootstrap, work)
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


def delete(bootstrap: str, targets: Sequence[tuple[PartitionArg, int | None]], *, as_json: bool) -> None:
    """Delete the records before offsets, and print the new first offsets.

    :raises KafkaError: For partitions whose records were not deleted, after the others are printed.
    """

    async def work(admin: Admin) -> Mapping[TopicPartition, int | KafkaError]:
        offsets = [(partition, HIGH_WATERMARK if offset is None else offset) for partition, offset in targets]
        return await admin.delete_records(await expand_partitions(admin, offsets))

    results = with_admin(bootstrap, work)
    start_offsets = {tp: offset for tp, offset in sorted(results.items()) if isinstance(offset, int)}
    if as_json:
        print_json([{**tp._asdict(), "earliest": offset} for tp, offset in start_offsets.items()])
    else:
        for tp, offset in start_offsets.items():
            print(f"{tp}: starts at {offset}")
    raise_all(_explain(tp, result) for tp, result in results.items())


def _explain(tp: TopicPartition, result: int | KafkaError) -> object:
    """Return an error with an explanation for POLICY_VIOLATION, because DeleteRecords has no error message."""
    if not isinstance(result, KafkaError) or result.code is not ErrorCode.POLICY_VIOLATION:
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
