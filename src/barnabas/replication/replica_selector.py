"""Selects the replica that a consumer reads from (KIP-392)."""

from collections.abc import Iterable
from typing import NamedTuple


class ReplicaView(NamedTuple):
    """An in-sync replica that has the offset that a consumer fetches."""

    broker_id: int
    rack: str | None
    end_offset: int


def select_in_rack(rack: str, leader: ReplicaView, followers: Iterable[ReplicaView]) -> int:
    """Return the leader if no replica or the leader itself is in the rack, else the replica there with most records."""
    in_rack = [each for each in followers if each.rack == rack]
    if leader.rack == rack or not in_rack:
        return leader.broker_id
    return max(in_rack, key=lambda each: (each.end_offset, -each.broker_id)).broker_id
