"""What `barnabas groups offsets|reset-offsets|delete-offsets` do."""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import NOT_FOUND, CommandError, wrong_use
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.places import expand_partitions, print_outcomes
from barnabas.cli.work.times import parse_time_ms
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


def show(bootstrap: str, name: str, places: Sequence[PartitionArg] | None, *, as_json: bool) -> None:
    """Print committed offsets and lags of the partitions that the group reads, or of `places`.

    :raises KafkaError: An error of the group, or of a partition.
    """
    found = with_cluster(bootstrap, lambda cluster: _lags(cluster, name, places))
    if as_json:
        print_json([_as_json(each) for each in found])
        return
    rows = [_row(each) for each in found]
    if len(found) > 1:
        rows.append(("total", "", "", str(total_lag(found)), ""))
    print_table(_COLUMNS, rows)
    if any(each.committed is None and each.lag is None for each in found):
        notice("Without a committed offset, the lag depends on auto.offset.reset of the group's consumers.")


async def _lags(
    cluster: ClusterClient, name: str, places: Sequence[PartitionArg] | None
) -> Sequence[PartitionLag]:
    partitions = await _resolved(cluster, places)
    if partitions is not None:
        return await lags_of_partitions(cluster, name, partitions)
    lags = (await lags_of(cluster, [name]))[name]
    if isinstance(lags, KafkaError):
        raise lags
    return lags


async def _committed(
    cluster: ClusterClient, name: str, wanted: Sequence[TopicPartition] | None
) -> dict[TopicPartition, OffsetAndMetadata]:
    found = await Groups(cluster).offsets(name, wanted)
    if not found and wanted is None:  # which Kafka says of groups that there are not, too
        raise_errors((await Groups(cluster).describe([name])).values())
    raise_errors(found.values())
    return {place: each for place, each in found.items() if isinstance(each, OffsetAndMetadata)}


async def _resolved(
    cluster: ClusterClient, places: Iterable[PartitionArg] | None
) -> list[TopicPartition] | None:
    if places is None:
        return None
    return list(await expand_partitions(Admin(cluster), [(place, None) for place in places]))


def target(*, earliest: bool, latest: bool, offset: int | None, time: str | None) -> Start:
    """Where offsets are to be.

    :raises CommandError: Unless exactly one place is named.
    """
    if [earliest, latest, offset is not None, time is not None].count(True) != 1:
        raise wrong_use("say where to: --to-earliest, --to-latest, --to-offset or --to-time, one of them")
    if offset is not None:
        return offset
    if time is not None:
        return OffsetSpec.at(parse_time_ms(time, SystemClock().wall_ms()))
    return EARLIEST if earliest else LATEST


def reset(
    bootstrap: str,
    name: str,
    places: Sequence[PartitionArg] | None,
    target: Start,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Commit other offsets, and print them.

    :raises CommandError: When there is nothing to commit for.
    :raises KafkaError: Why an offset was not taken; NON_EMPTY_GROUP for a group that has members.
    """

    async def work(cluster: ClusterClient) -> dict[TopicPartition, int]:
        given = await _resolved(cluster, places or None)
        committed = await _committed(cluster, name, given)
        now = {place: committed[place].offset if place in committed else None for place in given or committed}
        offsets = await reset_offsets(cluster, now, target) if now else {}
        if offsets and not dry_run:
            await _commit(cluster, name, offsets)
        return offsets

    offsets = with_cluster(bootstrap, work)
    if not offsets:
        message = f"group '{name}' has committed nothing"
        raise CommandError(message, hint="name the topics to commit for", exit_code=NOT_FOUND)
    if as_json:
        print_json([place._asdict() | {"offset": offset} for place, offset in sorted(offsets.items())])
    else:
        print_table(("partition", "offset"), sorted(offsets.items()))


async def _commit(cluster: ClusterClient, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    outcomes = await Groups(cluster).commit_offsets(name, offsets)
    if any(error and error.code is ErrorCode.UNKNOWN_MEMBER_ID for error in outcomes.values()):
        message = f"group '{name}' has members, and so commits by itself"
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, message)
    raise_errors(outcomes.values())


def delete(bootstrap: str, name: str, places: Sequence[PartitionArg], *, as_json: bool) -> None:
    """Forget commits, and print what became of each.

    :raises KafkaError: The first error.
    """

    async def work(cluster: ClusterClient) -> Mapping[TopicPartition, KafkaError | None]:
        return await Groups(cluster).delete_offsets(name, await _resolved(cluster, places) or ())

    print_outcomes(with_cluster(bootstrap, work), "forgotten", {}, as_json=as_json)


def _row(each: PartitionLag) -> tuple[object, ...]:
    return (
        each.tp,
        "-" if each.committed is None else each.committed.offset,
        _UNKNOWN if each.end is None else each.end,
        _UNKNOWN if each.lag is None else each.lag,
        "" if each.committed is None else each.committed.metadata,
    )


def _as_json(each: PartitionLag) -> dict[str, object]:
    committed = each.committed
    return {
        **each.tp._asdict(),
        "committed": None if committed is None else committed.offset,
        "leader_epoch": None if committed is None else committed.leader_epoch,
        "metadata": None if committed is None else committed.metadata,
        "end": each.end,
        "lag": each.lag,
    }
