"""Groups that read a topic."""

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import GroupListing, OffsetAndMetadata
from barnabas.client.group_lags import LagTotal, PartitionLag
from barnabas.console.pages.topic_groups import readers
from barnabas.wire.errors import ErrorCode, KafkaError


def listing(name: str) -> GroupListing:
    return GroupListing(name, "consumer", "Stable", "consumer")


def lag(topic: str, partition: int, committed: int | None) -> PartitionLag:
    offset = None if committed is None else OffsetAndMetadata(committed, -1, "")
    return PartitionLag(TopicPartition(topic, partition), offset, 10, 0)


def test_groups_that_read_a_topic_have_their_lag_in_its_partitions() -> None:
    lags = {
        "all": [lag("t", 0, 4), lag("t", 1, None), lag("u", 0, 0)],
        "other": [lag("u", 0, 10)],
        "hidden": KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no"),
    }
    [row] = readers("t", [listing(name) for name in lags], lags)
    assert (row.group.group_id, row.partitions_count, row.lag) == ("all", 2, LagTotal(6, 1))
