import pytest

from barnabas.replication.replica_selector import ReplicaView, select_in_rack

LEADER = ReplicaView(1, "a", 10)


@pytest.mark.parametrize(
    ("rack", "followers", "selected"),
    [
        ("a", [ReplicaView(2, "a", 10)], 1),  # the leader is in the rack
        ("b", [], 1),
        ("b", [ReplicaView(2, "c", 10), ReplicaView(3, None, 10)], 1),
        ("b", [ReplicaView(2, "b", 8), ReplicaView(3, "b", 9)], 3),  # the one that has most
        ("b", [ReplicaView(3, "b", 9), ReplicaView(2, "b", 9)], 2),
    ],
)
def test_the_replica_in_the_rack_with_most_records_is_selected(
    rack: str, followers: list[ReplicaView], selected: int
) -> None:
    assert select_in_rack(rack, LEADER, followers) == selected
