"""Targets of offset resets: a position of each log, or a shift of committed offsets."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec, find_offsets
from barnabas.client.consumer.consumer import Start
from barnabas.client.core.cluster import ClusterClient


@dataclass(frozen=True)
class Shift:
    """A shift by this many records, backwards if negative."""

    by: int


#: An offset, its meaning, or a shift.
Target = Start | Shift


async def reset_offsets(
    cluster: ClusterClient, committed: Mapping[TopicPartition, int | None], target: Target
) -> dict[TopicPartition, int]:
    """Return the new offset of each partition: within its log, and the log end if no record is as late as a time.

    :param committed: The group's present offsets; a partition without one is shifted from its start.
    :raises KafkaError: The error of the first partition without offsets.
    :raises BrokerConnectionError: If a leader cannot be reached.
    """
    first = await find_offsets(cluster, dict.fromkeys(committed, EARLIEST))
    last = await find_offsets(cluster, dict.fromkeys(committed, LATEST))
    if isinstance(target, OffsetSpec):
        positions = await find_offsets(cluster, dict.fromkeys(committed, target))
        return {tp: last[tp] if positions[tp] < 0 else positions[tp] for tp in committed}
    shifted = {tp: _shifted_offset(target, offset, first[tp]) for tp, offset in committed.items()}
    return {tp: min(max(offset, first[tp]), last[tp]) for tp, offset in shifted.items()}


def _shifted_offset(target: int | Shift, committed: int | None, first: int) -> int:
    if isinstance(target, Shift):
        return (first if committed is None else committed) + target.by
    return target
