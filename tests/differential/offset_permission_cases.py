"""Requests about committed offsets that both brokers must reject for the same principals."""

from typing import Any

from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from differential.permission_cases import Case
from differential.symbols import Name, TopicId

NAMES: list[Any] = [Name(name) for name in ("mine", "other", "mine-missing", "other-missing")]
IDS: list[Any] = [TopicId(name) for name in ("mine", "other", "missing")]

_COMMITTED = [
    OffsetCommitRequestTopic(name, partitions=[OffsetCommitRequestPartition(0, 5)]) for name in NAMES
]
_COMMITTED_BY_ID = [
    OffsetCommitRequestTopic(topic_id=topic_id, partitions=[OffsetCommitRequestPartition(0, 5)])
    for topic_id in IDS
]
_FETCHED = [
    OffsetFetchRequestGroup(
        group, topics=[OffsetFetchRequestTopics(name, partition_indexes=[0]) for name in NAMES]
    )
    for group in ("mine-group", "other-group")
]
_FETCHED_BY_ID = [
    OffsetFetchRequestGroup(
        "mine-group", topics=[OffsetFetchRequestTopics("", topic_id, [0]) for topic_id in IDS]
    )
]
_FORGOTTEN = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in NAMES]
_PLEDGED = [TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(0)]) for name in NAMES]

OFFSET_CASES: dict[str, Case] = {
    "OffsetCommit": Case(OffsetCommitRequest("mine-group", topics=_COMMITTED), 9),
    "OffsetCommit to another group": Case(OffsetCommitRequest("other-group", topics=_COMMITTED), 9),
    "OffsetCommit by id": Case(OffsetCommitRequest("mine-group", topics=_COMMITTED_BY_ID), 10),
    "OffsetFetch by id": Case(OffsetFetchRequest(groups=_FETCHED_BY_ID), 10),
    "OffsetFetch of one group": Case(
        OffsetFetchRequest("mine-group", [OffsetFetchRequestTopic(name, [0]) for name in NAMES]), 7
    ),
    "OffsetFetch of one group, all topics": Case(OffsetFetchRequest("mine-group", None), 5),
    "OffsetFetch of one group of another's": Case(OffsetFetchRequest("other-group", None), 2),
    "OffsetFetch": Case(OffsetFetchRequest(groups=_FETCHED), 8),
    "OffsetFetch of all topics": Case(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup("mine-group", topics=None)]), 8
    ),
    "OffsetDelete": Case(OffsetDeleteRequest("mine-group", _FORGOTTEN), 0),
    "OffsetDelete of another group": Case(OffsetDeleteRequest("other-group", _FORGOTTEN), 0),
    "TxnOffsetCommit": Case(TxnOffsetCommitRequest("mine-tx", "mine-group", 9, 0, topics=_PLEDGED), 3),
    "TxnOffsetCommit to another group": Case(
        TxnOffsetCommitRequest("mine-tx", "other-group", 9, 0, topics=_PLEDGED), 3
    ),
    "TxnOffsetCommit of another transaction": Case(
        TxnOffsetCommitRequest("other-tx", "mine-group", 9, 0, topics=_PLEDGED), 3
    ),
}
