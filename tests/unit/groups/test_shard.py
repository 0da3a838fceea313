"""Loading a shard from a compacted log, in any order of records."""

import asyncio
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.coordinator.runner import ShardRunner
from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.shard import GroupShard
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.committed_offset import (
    CommittedOffset,
    encode_group,
    encode_partition,
    encode_value,
)
from barnabas.wire.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from barnabas.wire.coordinator_records.serde import AnyRecord, CoordinatorRecord, EncodedRecord
from support.group_worlds import GroupWorld
from support.loop import in_virtual_time
from support.shards import MemoryShardLog

OFFSET = EncodedRecord(
    encode_group("g") + encode_partition("t", 0), encode_value(CommittedOffset(5, -1, "", 1_000))
)
CONSUMER = CoordinatorRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=3))
CLASSIC = CoordinatorRecord(
    GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="consumer", generation=3, members=[])
)


def loaded(*records: AnyRecord) -> GroupShard:
    config = GroupWorld().config
    shard = GroupShard(GroupCoordinatorContext(lambda: config, MetadataImage, Random(1)))
    for offset, record in enumerate(records):
        shard.replay(record, RecordPosition(offset, 1_000))
    return shard


@pytest.mark.parametrize(("group", "kind"), [(CONSUMER, "consumer"), (CLASSIC, "classic")])
def test_a_groups_type_comes_from_its_record_even_after_an_offset(
    group: CoordinatorRecord, kind: str
) -> None:
    for records in ((OFFSET, group), (group, OFFSET)):
        shard = loaded(*records)
        assert shard.groups["g"].group_type == kind
        assert shard.statistics()["offsets_count"] == 1


def test_offsets_alone_create_a_simple_group() -> None:
    group = loaded(OFFSET).groups["g"]
    assert (group.group_type, group.protocol_type, group.is_empty) == ("classic", "", True)
    assert loaded(OFFSET, EncodedRecord(OFFSET.key, None)).groups.keys() == {"g"}


@in_virtual_time
async def test_expired_offsets_that_are_large_together_are_deleted_and_the_expiration_goes_on() -> None:
    log = MemoryShardLog()
    value = encode_value(CommittedOffset(5, -1, "", 1_000))
    for index in range(500):
        log.append([EncodedRecord(encode_group("g" * 2_000) + encode_partition("t", index), value)], 0, None)
    log.bytes_max = 1 << 16
    runner = ShardRunner(loaded(), log, ManualClock(8 * 24 * 3_600_000))
    await runner.load()
    await asyncio.sleep(601)
    assert runner.shard.groups == {}
    assert runner.shard.statistics()["offsets_count"] == 0
    assert runner.timers_count == 1
