"""The committed offset of a group for a partition, in requests between brokers."""

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.schema import Struct, int32, int64, string, uuid


class GroupPartitionOffset(Struct):
    group_id: str = string(default="")
    partition_index: int = int32(default=0)
    committed_offset: int = int64(default=0)
    committed_leader_epoch: int = int32(default=-1)
    metadata: str = string(default="")
    commit_timestamp: int = int64(default=-1)
    expire_timestamp: int = int64(default=-1)
    topic_id: bytes = uuid(default=ZERO_UUID)
