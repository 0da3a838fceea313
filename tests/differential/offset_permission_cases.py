"""Who may commit, fetch and delete whose offsets: the requests of which both brokers must refuse the same."""

from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from differential.permission_cases import Case
from support.offsets import commit_topics

_COMMITTED = commit_topics({"mine": {0: 5}, "other": {0: 5}, "missing": {0: 5}})
_FETCHED = [
    OffsetFetchRequestGroup(
        group, topics=[OffsetFetchRequestTopics(name, partition_indexes=[0]) for name in ("mine", "other")]
    )
    for group in ("mine-group", "other-group")
]
_FORGOTTEN = [
    OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in ("mine", "other", "missing")
]
_PLEDGED = [
    TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(0)])
    for name in ("mine", "other", "missing")
]

OFFSET_CASES: dict[str, Case] = {
    "OffsetCommit": Case(OffsetCommitRequest("mine-group", topics=_COMMITTED), 9, True),
    "OffsetCommit to another group": Case(OffsetCommitRequest("other-group", topics=_COMMITTED), 9, True),
    "OffsetFetch": Case(OffsetFetchRequest(groups=_FETCHED), 8, True),
    "OffsetFetch of all topics": Case(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup("mine-group", topics=None)]), 8
    ),
    "OffsetDelete": Case(OffsetDeleteRequest("mine-group", _FORGOTTEN), 0, True),
    "OffsetDelete of another group": Case(OffsetDeleteRequest("other-group", _FORGOTTEN), 0, True),
    "TxnOffsetCommit": Case(TxnOffsetCommitRequest("mine-tx", "mine-group", 9, 0, topics=_PLEDGED), 3, True),
    "TxnOffsetCommit to another group": Case(
        TxnOffsetCommitRequest("mine-tx", "other-group", 9, 0, topics=_PLEDGED), 3, True
    ),
    "TxnOffsetCommit of another transaction": Case(
        TxnOffsetCommitRequest("other-tx", "mine-group", 9, 0, topics=_PLEDGED), 3, True
    ),
}
