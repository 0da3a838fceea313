"""What `barnabas records` does."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import REFUSED, CommandError
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.outcomes import raise_all
from barnabas.cli.work.places import expand_partitions
from barnabas.cli.work.times import moment, parse_time_ms
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.leader_epochs import EpochEnd, list_epoch_ends
from barnabas.client.admin.model import HIGH_WATERMARK
from barnabas.client.admin.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Isolation, ListedOffset, OffsetSpec
from barnabas.wire.errors import ErrorCode, KafkaError

Outcomes = Mapping[TopicPartition, ListedOffset | KafkaError]


class _Asked(NamedTuple):
    """What was asked for, by the name of its column."""

    earliest: Outcomes
    latest: Outcomes
    newest: Outcomes  #: the record with the greatest timestamp
    at_time: Outcomes | None


def show_offsets(
    bootstrap: str, places: Sequence[PartitionArg], time: str | None, *, committed: bool, as_json: bool
) -> None:
    """Print where partitions begin and end.

    :raises KafkaError: For those that cannot be asked, when the others are printed.
    """
    at_time = None if time is None else OffsetSpec.at(parse_time_ms(time, SystemClock().wall_ms()))
    isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED

    async def work(admin: Admin) -> _Asked:
        named = await expand_partitions(admin, [(place, None) for place in places])

        async def ask(spec: OffsetSpec) -> Outcomes:
            return await admin.list_offsets(dict.fromkeys(named, spec), isolation)

        return _Asked(
            await ask(EARLIEST),
            await ask(LATEST),
            await ask(MAX_TIMESTAMP),
            None if at_time is None else await ask(at_time),
        )

    asked = with_admin(bootstrap, work)
    found = [_as_json(place, asked) for place in sorted(asked.earliest) if _is_whole(place, asked)]
    if as_json:
        print_json(found)
    else:
        columns = ("partition", "earliest", "latest", "newest", "newest at")
        rows = [
            (
                f"{each['topic']}-{each['partition']}",
                each["earliest"],
                each["latest"],
                _shown(each["newest"]),
                moment(each["newest_timestamp_ms"]),
                *([] if time is None else [_shown(each["at_time"])]),
            )
            for each in found
        ]
        print_table(columns if time is None else (*columns, f"from {time} on"), rows)
    raise_all(_first_error(place, asked) for place in asked.earliest)


def _each(place: TopicPartition, asked: _Asked) -> list[ListedOffset | KafkaError]:
    return [outcomes[place] for outcomes in asked if outcomes is not None]


def _is_whole(place: TopicPartition, asked: _Asked) -> bool:
    return all(isinstance(each, ListedOffset) for each in _each(place, asked))


def _first_error(place: TopicPartition, asked: _Asked) -> KafkaError | None:
    return next((each for each in _each(place, asked) if isinstance(each, KafkaError)), None)


def _as_json(place: TopicPartition, asked: _Asked) -> dict[str, Any]:
    earliest, latest, newest, *at_time = [
        each for each in _each(place, asked) if isinstance(each, ListedOffset)
    ]
    found: dict[str, Any] = {
        **place._asdict(),
        "earliest": earliest.offset,
        "latest": latest.offset,
        "newest": _or_none(newest.offset),
        "newest_timestamp_ms": _or_none(newest.timestamp_ms),
    }
    if at_time:
        found["at_time"] = _or_none(at_time[0].offset)
    return found


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


def _shown(cell: object) -> object:
    return "" if cell is None else cell


def show_epoch_ends(bootstrap: str, places: Sequence[PartitionArg], epoch: int, *, as_json: bool) -> None:
    """Print where an epoch ended.

    :raises KafkaError: For partitions that cannot be asked, when the others are printed.
    """

    async def work(admin: Admin) -> Mapping[TopicPartition, EpochEnd | KafkaError]:
        named = await expand_partitions(admin, [(place, epoch) for place in places])
        return await list_epoch_ends(admin.cluster, named)

    outcomes = with_admin(bootstrap, work)
    ends = {place: each for place, each in sorted(outcomes.items()) if isinstance(each, EpochEnd)}
    if as_json:
        print_json(
            [
                {
                    **place._asdict(),
                    "leader_epoch": _or_none(end.leader_epoch),
                    "end_offset": _or_none(end.end_offset),
                }
                for place, end in ends.items()
            ]
        )
    else:
        rows = [(place, *(_shown(_or_none(number)) for number in end)) for place, end in ends.items()]
        print_table(("partition", "epoch", "ends before"), rows)
    raise_all(outcomes.values())


def delete(bootstrap: str, targets: Sequence[tuple[PartitionArg, int | None]], *, as_json: bool) -> None:
    """Delete what lies before offsets, and print where partitions begin now.

    :raises KafkaError: For partitions that are refused, when the others are printed.
    """

    async def work(admin: Admin) -> Mapping[TopicPartition, int | KafkaError]:
        offsets = [(place, HIGH_WATERMARK if offset is None else offset) for place, offset in targets]
        return await admin.delete_records(await expand_partitions(admin, offsets))

    outcomes = with_admin(bootstrap, work)
    begins = {place: each for place, each in sorted(outcomes.items()) if isinstance(each, int)}
    if as_json:
        print_json([{**place._asdict(), "earliest": offset} for place, offset in begins.items()])
    else:
        for place, offset in begins.items():
            print(f"{place}: begins at {offset}")
    raise_all(_explained(place, each) for place, each in outcomes.items())


def _explained(place: TopicPartition, outcome: int | KafkaError) -> object:
    """Say what POLICY_VIOLATION means here: DeleteRecords answers with a code alone."""
    if not isinstance(outcome, KafkaError) or outcome.code is not ErrorCode.POLICY_VIOLATION:
        return outcome
    topic = place.topic
    message = f"records of {place} cannot be deleted: the cleanup.policy of topic '{topic}' has no 'delete'"
    hint = (
        f"produce null values for the keys to remove; or 'barnabas configs set topic {topic} cleanup.policy+=delete', "
        "after which retention.ms and retention.bytes of the topic delete records, too"
    )
    return CommandError(message, hint=hint, exit_code=REFUSED, kind=outcome.code.name)
