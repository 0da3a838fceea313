"""What the audit tells of requests beside what they change in the store.

Changes that somebody wanted and may not have are read off the answers, whoever has refused them.

What cannot be done for other reasons is a mistake, and no refusal.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from barnabas.api.context import RequestContext
from barnabas.base.resource_names import quota_resource
from barnabas.config.config_resource import ResourceKind
from barnabas.metadata.audit.changes import acl_resource, config_resource
from barnabas.metadata.audit.records import Refusal
from barnabas.metadata.quotas import entity_of
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import PatternType, ResourceType, from_code
from barnabas.wire.barnabas_messages.purge_topics import PurgeTopicsRequest
from barnabas.wire.barnabas_messages.rollback_resource import RollbackResourceRequest
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest

_log = get_logger("barnabas.audit")

#: What is a refusal.
_REFUSED = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)

_KINDS = frozenset(ResourceKind)

CLUSTER = "cluster/kafka-cluster"

#: (resource, error code, message) of each result of an answer.
Results: TypeAlias = Iterable[tuple[str, int, str | None]]


async def record_refusals(context: RequestContext, request: Any, response: object) -> None:
    """Have the audit tell what an answer of `CHANGING_APIS` refuses, and what the request's context has noted.

    That is what policies in mode `warn` are against, and changes elsewhere than in the store.
    """
    if response is None:
        return
    refusals = await context.compute(refusals_of, context, request, response)
    warnings, differences = context.warnings, context.differences
    if not refusals and not warnings and not differences:
        return
    try:
        await context.node.metadata.remark(context.actor, refusals, warnings, differences)
    except KafkaError as error:  # the answer is right all the same
        _log.error("cannot write an audit record", api=context.api.name, why=error.message)


def refusals_of(context: RequestContext, request: Any, response: object) -> list[Refusal]:
    """What an answer refuses of the changes that `request` asks for; nothing of requests that change nothing."""
    if getattr(request, "validate_only", False):
        return []
    read = _READERS[context.api.api_key]
    return [
        Refusal(resource, ErrorCode(code).name, message or "")
        for resource, code, message in read(request, response)
        if code in _REFUSED
    ]


def _topics(request: Any, response: Any) -> Results:
    results = response.topics if isinstance(request, CreateTopicsRequest) else response.results
    return ((f"topic/{each.name}", each.error_code, each.error_message) for each in results)


def _deleted_topics(_request: Any, response: Any) -> Results:
    for each in response.responses:
        name = each.topic_id.hex() if each.name is None else each.name
        yield f"topic/{name}", each.error_code, each.error_message


def _configs(_request: Any, response: Any) -> Results:
    for each in response.responses:
        if each.resource_type in _KINDS:  # others cannot be meant, which is no refusal
            resource = config_resource(ResourceKind(each.resource_type), each.resource_name)
            yield resource, each.error_code, each.error_message


def _created_acls(request: Any, response: Any) -> Results:
    for asked, each in zip(request.creations, response.results, strict=True):
        resource = _acl(asked.resource_type, asked.resource_name, asked.resource_pattern_type)
        yield resource, each.error_code, each.error_message


def _deleted_acls(_request: Any, response: Any) -> Results:
    for each in response.filter_results:
        yield CLUSTER, each.error_code, each.error_message
        for found in each.matching_acls:
            resource = _acl(found.resource_type, found.resource_name, found.pattern_type)
            yield resource, found.error_code, found.error_message


def _acl(resource_type: int, name: str, pattern: int) -> str:
    return acl_resource(from_code(ResourceType, resource_type), name, from_code(PatternType, pattern))


def _quotas(_request: Any, response: Any) -> Results:
    for each in response.entries:
        entity = entity_of({part.entity_type: part.entity_name for part in each.entity})
        yield quota_resource(entity), each.error_code, each.error_message


def _users(_request: Any, response: Any) -> Results:
    return ((f"user/{each.user}", each.error_code, each.error_message) for each in response.results)


def _reassigned(_request: Any, response: Any) -> Results:
    yield CLUSTER, response.error_code, response.error_message
    for topic in response.responses:
        for each in topic.partitions:
            yield f"topic/{topic.name}", each.error_code, each.error_message


def _elected(_request: Any, response: Any) -> Results:
    yield CLUSTER, response.error_code, None
    for topic in response.replica_election_results:
        for each in topic.partition_result:
            yield f"topic/{topic.topic}", each.error_code, each.error_message


def _purged(_request: Any, response: Any) -> Results:
    return ((f"topic/{each.name}", each.error_code, each.error_message) for each in response.results)


def _undeleted(request: Any, response: Any) -> Results:
    return [(f"topic/{request.name}", response.error_code, response.error_message)]


def _rolled_back(request: Any, response: Any) -> Results:
    return [(request.resource, response.error_code, response.error_message)]


def _deleted_records(_request: Any, response: Any) -> Results:
    for topic in response.topics:
        for each in topic.partitions:
            yield f"topic/{topic.name}", each.error_code, None


def _deleted_groups(_request: Any, response: Any) -> Results:
    return ((f"group/{each.group_id}", each.error_code, None) for each in response.results)


def _deleted_offsets(request: Any, response: Any) -> Results:
    yield f"group/{request.group_id}", response.error_code, None
    for topic in response.topics:
        for each in topic.partitions:
            yield f"topic/{topic.name}", each.error_code, None


def _moved(_request: Any, response: Any) -> Results:
    for topic in response.results:
        for each in topic.partitions:
            yield CLUSTER, each.error_code, None


def _ended(_request: Any, response: Any) -> Results:
    for producer in response.markers:
        for topic in producer.topics:
            for each in topic.partitions:
                yield CLUSTER, each.error_code, None


def _cluster_refusals(_request: Any, response: Any) -> Results:
    return [(CLUSTER, response.error_code, response.error_message)]


_READERS: Mapping[int, Callable[[Any, Any], Results]] = MappingProxyType(
    {
        AddRaftVoterRequest.API_KEY: _cluster_refusals,
        AlterClientQuotasRequest.API_KEY: _quotas,
        AlterConfigsRequest.API_KEY: _configs,
        AlterPartitionReassignmentsRequest.API_KEY: _reassigned,
        AlterReplicaLogDirsRequest.API_KEY: _moved,
        AlterUserScramCredentialsRequest.API_KEY: _users,
        CreateAclsRequest.API_KEY: _created_acls,
        CreatePartitionsRequest.API_KEY: _topics,
        CreateTopicsRequest.API_KEY: _topics,
        DeleteAclsRequest.API_KEY: _deleted_acls,
        DeleteGroupsRequest.API_KEY: _deleted_groups,
        DeleteRecordsRequest.API_KEY: _deleted_records,
        DeleteTopicsRequest.API_KEY: _deleted_topics,
        ElectLeadersRequest.API_KEY: _elected,
        IncrementalAlterConfigsRequest.API_KEY: _configs,
        OffsetDeleteRequest.API_KEY: _deleted_offsets,
        RemoveRaftVoterRequest.API_KEY: _cluster_refusals,
        PurgeTopicsRequest.API_KEY: _purged,
        RollbackResourceRequest.API_KEY: _rolled_back,
        UndeleteTopicRequest.API_KEY: _undeleted,
        UnregisterBrokerRequest.API_KEY: _cluster_refusals,
        UpdateFeaturesRequest.API_KEY: _cluster_refusals,
        WriteTxnMarkersRequest.API_KEY: _ended,
    }
)

#: The keys of the APIs whose changes the audit tells of.
CHANGING_APIS = frozenset(_READERS)
