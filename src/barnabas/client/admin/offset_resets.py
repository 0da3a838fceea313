"""Where a group's offsets are to be: at a place of each log, or so far from where they are."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec, find_offsets
from barnabas.client.consumer.consumer import Start
from barnabas.client.core.cluster import ClusterClient


@dataclass(frozen=True)
class Shift:
    """So many records on from what is committed, or back if negative."""

    by: int


#: An offset, its meaning, or a way to go.
Target = Start | Shift


async def reset_offsets(
    cluster: ClusterClient, committed: Mapping[TopicPartition, int | None], target: Target
) -> dict[TopicPartition, int]:
    """The offset that each partition would be given: within its log, and its end where no record is as late as a time.

    :param committed: Where the group is now; a partition without a commit is shifted from its beginning.
    :raises KafkaError: That of the first partition that has no offsets.
    :raises BrokerConnectionError: When a leader cannot be reached.
    """
    first = await find_offsets(cluster, dict.fromkeys(committed, EARLIEST))
    last = await find_offsets(cluster, dict.fromkeys(committed, LATEST))
    if isinstance(target, OffsetSpec):
        found = await find_offsets(cluster, dict.fromkeys(committed, target))
        return {tp: last[tp] if found[tp] < 0 else found[tp] for tp in committed}
    wanted = {tp: _wanted(target, offset, first[tp]) for tp, offset in committed.items()}
    return {tp: min(max(offset, first[tp]), last[tp]) for tp, offset in wanted.items()}


def _wanted(target: int | Shift, committed: int | None, first: int) -> int:
    if isinstance(target, Shift):
        return (first if committed is None else committed) + target.by
    return target
