"""Permissions that requests need: the form of a rule, and the rules of the APIs on committed offsets."""

import copy
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.wire.acls import AclOperation as Op
from barnabas.wire.acls import ResourceType
from barnabas.wire.barnabas_messages.describe_acl_decisions import DescribeAclDecisionsRequest
from barnabas.wire.barnabas_messages.describe_acl_use import DescribeAclUseRequest
from barnabas.wire.barnabas_messages.describe_cluster_status import DescribeClusterStatusRequest
from barnabas.wire.barnabas_messages.describe_rebalances import DescribeRebalancesRequest
from barnabas.wire.barnabas_messages.describe_topic_offsets import DescribeTopicOffsetsRequest
from barnabas.wire.barnabas_messages.import_segments import ImportSegmentsRequest, ImportSegmentsTopic
from barnabas.wire.barnabas_messages.purge_topics import PurgeTopicsRequest, TopicToPurge
from barnabas.wire.barnabas_messages.restore_topic_offsets import RestoreTopicOffsetsRequest
from barnabas.wire.barnabas_messages.rollback_resource import RollbackResourceRequest
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.errors import ErrorCode
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
from barnabas.wire.schema import Message, Struct
from support.offsets import commit_topics

TOPIC, GROUP, CLUSTER, TRANSACTION = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
Permission = tuple[Op, ResourceType]

#: Any of these permissions lets a principal describe a topic.
SEE_TOPIC = frozenset((each, TOPIC) for each in (Op.DESCRIBE, Op.READ, Op.WRITE, Op.DELETE, Op.ALTER))
SEE_CLUSTER = frozenset({(Op.DESCRIBE, CLUSTER), (Op.ALTER, CLUSTER)})
SEE_GROUP = frozenset((each, GROUP) for each in (Op.DESCRIBE, Op.READ, Op.DELETE))
ALTER_CLUSTER = frozenset({(Op.ALTER, CLUSTER)})

TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTION_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Rule(NamedTuple):
    """A request, the permissions of which any one allows it, and the error code without them."""

    request: Message
    permissions: frozenset[Permission]
    code: ErrorCode
    version: int | None = None
    #: permissions that are required in addition
    granted: frozenset[Permission] = frozenset()

    @property
    def without_validate_only(self) -> "Rule":
        """Return the same rule with a request that is carried out instead of validated only."""
        earnest = copy.copy(self.request)
        if hasattr(earnest, "validate_only"):
            earnest.validate_only = False
        return self._replace(request=earnest)


def one(operation: Op, resource_type: ResourceType) -> frozenset[Permission]:
    return frozenset({(operation, resource_type)})


_OFFSETS = commit_topics({"t": {0: 5}})
_DELETED = [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]
_PENDING = [TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0)])]
_IN_TRANSACTION = TxnOffsetCommitRequest("t", "t", topics=_PENDING)
_FETCHED = OffsetFetchRequestGroup("t", topics=[OffsetFetchRequestTopics("t", partition_indexes=[0])])
_READ_GROUP, _READ_TOPIC = (Op.READ, GROUP), (Op.READ, TOPIC)
_WRITE_TRANSACTION = (Op.WRITE, TRANSACTION)

OFFSET_RULES = [
    Rule(request, one(*needed), code, version, frozenset(granted))
    for request, needed, code, version, *granted in (
        (OffsetCommitRequest("t", topics=_OFFSETS), _READ_GROUP, GROUP_REFUSED, 9, _READ_TOPIC),
        (OffsetCommitRequest("t", topics=_OFFSETS), _READ_TOPIC, TOPIC_REFUSED, 9, _READ_GROUP),
        (OffsetDeleteRequest("t", _DELETED), (Op.DELETE, GROUP), GROUP_REFUSED, None, _READ_TOPIC),
        (OffsetDeleteRequest("t", _DELETED), _READ_TOPIC, TOPIC_REFUSED, None, (Op.DELETE, GROUP)),
        (_IN_TRANSACTION, _WRITE_TRANSACTION, TRANSACTION_REFUSED, None, _READ_GROUP, _READ_TOPIC),
        (_IN_TRANSACTION, _READ_GROUP, GROUP_REFUSED, None, _WRITE_TRANSACTION, _READ_TOPIC),
        (_IN_TRANSACTION, _READ_TOPIC, TOPIC_REFUSED, None, _WRITE_TRANSACTION, _READ_GROUP),
    )
] + [
    Rule(OffsetFetchRequest(groups=[_FETCHED]), SEE_GROUP, GROUP_REFUSED, 9, one(Op.DESCRIBE, TOPIC)),
]


def rollback(resource: str) -> RollbackResourceRequest:
    return RollbackResourceRequest(resource=resource, revision=1, validate_only=True)


#: Rules of the APIs that only Barnabas has.
OWN_RULES = [
    Rule(
        UndeleteTopicRequest(name="t"),
        one(Op.CREATE, TOPIC) | one(Op.CREATE, CLUSTER),
        TOPIC_REFUSED,
        granted=one(Op.DELETE, TOPIC),
    ),
    Rule(
        UndeleteTopicRequest(name="t"),
        one(Op.DELETE, TOPIC),
        TOPIC_REFUSED,
        granted=one(Op.CREATE, CLUSTER),
    ),
    Rule(
        UndeleteTopicRequest(name="t", new_name="other"),
        one(Op.READ, TOPIC),
        TOPIC_REFUSED,
        granted=one(Op.DELETE, TOPIC) | one(Op.CREATE, CLUSTER),
    ),
    Rule(
        PurgeTopicsRequest(topics=[TopicToPurge(name="t")]),
        one(Op.DELETE, TOPIC) | one(Op.DELETE, CLUSTER),
        TOPIC_REFUSED,
    ),
    Rule(rollback("topic/t"), one(Op.ALTER_CONFIGS, TOPIC), TOPIC_REFUSED),
    Rule(ImportSegmentsRequest([ImportSegmentsTopic("t", [0])]), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(rollback("topic/t*"), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(rollback("group/t"), one(Op.ALTER_CONFIGS, GROUP), GROUP_REFUSED),
    Rule(rollback("broker/1"), one(Op.ALTER_CONFIGS, CLUSTER), CLUSTER_REFUSED),
    Rule(rollback("quota/user=t"), one(Op.ALTER_CONFIGS, CLUSTER), CLUSTER_REFUSED),
    Rule(rollback("user/t"), ALTER_CLUSTER, CLUSTER_REFUSED),
    Rule(DescribeAclDecisionsRequest(), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(DescribeAclUseRequest(), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(DescribeClusterStatusRequest(), SEE_CLUSTER, CLUSTER_REFUSED),
    Rule(DescribeRebalancesRequest("t"), SEE_GROUP, GROUP_REFUSED),
    Rule(DescribeTopicOffsetsRequest(["t"]), one(Op.CLUSTER_ACTION, CLUSTER), CLUSTER_REFUSED),
    Rule(RestoreTopicOffsetsRequest("t"), one(Op.CLUSTER_ACTION, CLUSTER), CLUSTER_REFUSED),
]


def codes(struct: Struct) -> Iterator[int]:
    """Return every error code in a response."""
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        if field.name == "error_code":
            yield value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                yield from codes(each)
