"""The permissions that Apache Kafka checks, by API, and how answers show that it does."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

from barnabas.wire.acls import AclOperation
from differential.permissions import PRINCIPALS
from differential.secured import ANONYMOUS

#: API -> the permissions that it checks for a request of some form, as OPERATION TYPE.
CHECKS: dict[str, set[str]] = {
    "Produce": {"WRITE TOPIC", "WRITE TRANSACTIONAL_ID"},
    "Fetch": {"READ TOPIC", "CLUSTER_ACTION CLUSTER"},
    "ListOffsets": {"DESCRIBE TOPIC"},
    "Metadata": {"DESCRIBE TOPIC", "CREATE TOPIC", "CREATE CLUSTER", "DESCRIBE CLUSTER"},
    "OffsetCommit": {"READ GROUP", "READ TOPIC"},
    "OffsetFetch": {"DESCRIBE GROUP", "DESCRIBE TOPIC"},
    "FindCoordinator": {"DESCRIBE GROUP", "DESCRIBE TRANSACTIONAL_ID", "CLUSTER_ACTION CLUSTER"},
    "JoinGroup": {"READ GROUP"},
    "Heartbeat": {"READ GROUP"},
    "LeaveGroup": {"READ GROUP"},
    "SyncGroup": {"READ GROUP"},
    "DescribeGroups": {"DESCRIBE GROUP"},
    "ListGroups": {"DESCRIBE GROUP", "DESCRIBE CLUSTER"},
    "ApiVersions": set(),
    "CreateTopics": {"CREATE TOPIC", "CREATE CLUSTER", "DESCRIBE_CONFIGS TOPIC"},
    "DeleteTopics": {"DELETE TOPIC", "DESCRIBE TOPIC"},
    "DeleteRecords": {"DELETE TOPIC"},
    "InitProducerId": {
        *("WRITE TRANSACTIONAL_ID", "TWO_PHASE_COMMIT TRANSACTIONAL_ID"),
        *("IDEMPOTENT_WRITE CLUSTER", "WRITE TOPIC"),
    },
    "OffsetForLeaderEpoch": {"DESCRIBE TOPIC", "CLUSTER_ACTION CLUSTER"},
    "AddPartitionsToTxn": {"WRITE TRANSACTIONAL_ID", "WRITE TOPIC", "CLUSTER_ACTION CLUSTER"},
    "AddOffsetsToTxn": {"WRITE TRANSACTIONAL_ID", "READ GROUP"},
    "EndTxn": {"WRITE TRANSACTIONAL_ID"},
    "WriteTxnMarkers": {"CLUSTER_ACTION CLUSTER", "ALTER CLUSTER"},
    "TxnOffsetCommit": {"WRITE TRANSACTIONAL_ID", "READ GROUP", "READ TOPIC"},
    "DescribeAcls": {"DESCRIBE CLUSTER"},
    "CreateAcls": {"ALTER CLUSTER"},
    "DeleteAcls": {"ALTER CLUSTER"},
    "DescribeConfigs": {"DESCRIBE_CONFIGS TOPIC", "DESCRIBE_CONFIGS GROUP", "DESCRIBE_CONFIGS CLUSTER"},
    "AlterConfigs": {"ALTER_CONFIGS TOPIC", "ALTER_CONFIGS GROUP", "ALTER_CONFIGS CLUSTER"},
    "AlterReplicaLogDirs": {"ALTER CLUSTER"},
    "DescribeLogDirs": {"DESCRIBE CLUSTER"},
    "CreatePartitions": {"ALTER TOPIC"},
    "CreateDelegationToken": {"CREATE_TOKENS USER"},
    "RenewDelegationToken": set(),
    "ExpireDelegationToken": set(),
    "DescribeDelegationToken": {"DESCRIBE DELEGATION_TOKEN", "DESCRIBE_TOKENS USER"},
    "DeleteGroups": {"DELETE GROUP"},
    "ElectLeaders": {"ALTER CLUSTER"},
    "IncrementalAlterConfigs": {"ALTER_CONFIGS TOPIC", "ALTER_CONFIGS GROUP", "ALTER_CONFIGS CLUSTER"},
    "AlterPartitionReassignments": {"ALTER CLUSTER"},
    "ListPartitionReassignments": {"DESCRIBE CLUSTER"},
    "OffsetDelete": {"DELETE GROUP", "READ TOPIC"},
    "DescribeClientQuotas": {"DESCRIBE_CONFIGS CLUSTER"},
    "AlterClientQuotas": {"ALTER_CONFIGS CLUSTER"},
    "DescribeUserScramCredentials": {"DESCRIBE CLUSTER"},
    "AlterUserScramCredentials": {"ALTER CLUSTER"},
    "DescribeQuorum": {"DESCRIBE CLUSTER"},
    "UpdateFeatures": {"ALTER CLUSTER"},
    "DescribeCluster": {"DESCRIBE CLUSTER"},
    "DescribeProducers": {"READ TOPIC"},
    "UnregisterBroker": {"ALTER CLUSTER"},
    "DescribeTransactions": {"DESCRIBE TRANSACTIONAL_ID", "DESCRIBE TOPIC"},
    "ListTransactions": {"DESCRIBE TRANSACTIONAL_ID"},
    "ConsumerGroupHeartbeat": {"READ GROUP", "DESCRIBE TOPIC"},
    "ConsumerGroupDescribe": {"DESCRIBE GROUP", "DESCRIBE TOPIC"},
    "GetTelemetrySubscriptions": set(),
    "PushTelemetry": set(),
    "ListConfigResources": {"DESCRIBE_CONFIGS CLUSTER"},
    "DescribeTopicPartitions": {"DESCRIBE TOPIC"},
    "AddRaftVoter": {"ALTER CLUSTER"},
    "RemoveRaftVoter": {"ALTER CLUSTER"},
    "UpdateRaftVoter": {"CLUSTER_ACTION CLUSTER"},
}

#: The APIs by which a client says who it is.
BEFORE_LOGIN = {"SaslHandshake", "SaslAuthenticate"}

_IMPLYING = {
    AclOperation.DESCRIBE.name: ("READ", "WRITE", "DELETE", "ALTER"),
    AclOperation.DESCRIBE_CONFIGS.name: ("ALTER_CONFIGS",),
}


def implying(permissions: set[str]) -> set[str]:
    """Return the permissions that imply some of these."""
    return {
        f"{operation} {resource_type}"
        for implied, _, resource_type in (each.partition(" ") for each in permissions)
        for operation in _IMPLYING.get(implied, ())
    }


class Neighbours(NamedTuple):
    """Two users whose ACLs differ by one, about this permission."""

    one: str
    other: str
    permission: str


def _neighbours() -> Iterator[Neighbours]:
    for one, other in permutations(PRINCIPALS.keys() - {ANONYMOUS}, 2):
        added = set(PRINCIPALS[other]) - set(PRINCIPALS[one])
        if len(added) == 1 and set(PRINCIPALS[one]) < set(PRINCIPALS[other]):
            [grant] = added
            if grant.operation is not AclOperation.ALL:
                yield Neighbours(one, other, f"{grant.operation.name} {grant.resource_type.name}")


NEIGHBOURS = tuple(_neighbours())


def decisive(answers: dict[str, Any]) -> set[str]:
    """Return the permissions that change an answer; `answers` are by the user's name."""
    return {each.permission for each in NEIGHBOURS if answers[each.one] != answers[each.other]}
