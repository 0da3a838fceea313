"""Administration of topics, partitions, configs, offsets, records and the cluster.

Calls about several resources return one outcome for each: the result, or the KafkaError for it alone. `raise_errors`
raises the first error among them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from barnabas import __version__
from barnabas.base.ids import TopicPartition
from barnabas.client.admin import acls, cluster_control, log_dirs, quotas, scram
from barnabas.client.admin.extensions import rollback, segments, trash
from barnabas.client.admin.model import (
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    NewTopic,
    alter_configs_resource,
    cluster_from_metadata,
    config_entries,
    creatable_topic,
    create_partitions_topic,
    delete_records_request,
    describe_configs_resource,
    parse_created_topic,
    parse_delete_records_response,
    parse_describe_cluster_response,
    parse_list_config_resources_response,
    replace_configs_resource,
    responsible_node,
)
from barnabas.client.admin.offsets import ListedOffset, OffsetSpec, list_offsets
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import check, error_for
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.alter_op import AlterConfigOp
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.acls import AclBinding, AclFilter
from barnabas.wire.barnabas_messages.describe_acl_use import DescribeAclUseRequest
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.features import UpgradeType
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.schema import Message
from barnabas.wire.scram import ScramMechanism

TIMEOUT_MS = 30_000
_CONTROLLER_ATTEMPTS_MAX = 5


def raise_errors(outcomes: Iterable[object]) -> None:
    """Raise the first KafkaError among `outcomes`, if there is one."""
    for outcome in outcomes:
        if isinstance(outcome, KafkaError):
            raise outcome


class Admin:
    """Administers a cluster; stateless."""

    def __init__(self, cluster: ClusterClient, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self.cluster = cluster
        self.timeout_ms = timeout_ms  #: time limit of brokers for one call

    async def send(self, request: Message, node: int | None = None) -> Any:
        """Send any request to `node`, or to any broker, and retry it after a lost connection.

        Return the response; the caller reads its error codes.

        :raises BrokerConnectionError: If no broker answers.
        """
        return await self.cluster.retrying(lambda: self.cluster.send(request, node))

    async def describe_topics(
        self, names: Collection[str] | None = None
    ) -> dict[str, TopicInfo | KafkaError]:
        """Describe the named topics, or all; an unknown one has UNKNOWN_TOPIC_OR_PARTITION."""
        metadata = await self.cluster.retrying(lambda: self.cluster.refresh(names))
        topics = metadata.topics if names is None else {name: metadata.topics[name] for name in names}
        return {name: topic.error or topic for name, topic in sorted(topics.items())}

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create each topic, or with `validate_only` check whether it could be created."""
        request = CreateTopicsRequest(
            topics=[creatable_topic(topic) for topic in topics],
            timeout_ms=self.timeout_ms,
            validate_only=validate_only,
        )
        response: CreateTopicsResponse = await self._send_to_controller(request, "topics")
        throttle_time_ms = response.throttle_time_ms
        return {result.name: parse_created_topic(result, throttle_time_ms) for result in response.topics}

    async def delete_topics(self, names: Collection[str]) -> dict[str, KafkaError | None]:
        """Delete each topic; None for success."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names],
            topic_names=list(names),
            timeout_ms=self.timeout_ms,
        )
        response: DeleteTopicsResponse = await self._send_to_controller(request, "responses")
        return {
            result.name or "": error_for(result.error_code, result.error_message, response.throttle_time_ms)
            for result in response.responses
        }

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
    ) -> dict[str, KafkaError | None]:
        """Extend each topic to its number of partitions; `assignments` are node ids of the new ones, in order."""
        partitions = assignments or {}
        request = CreatePartitionsRequest(
            topics=[
                create_partitions_topic(name, count, partitions.get(name)) for name, count in counts.items()
            ],
            timeout_ms=self.timeout_ms,
            validate_only=validate_only,
        )
        response: CreatePartitionsResponse = await self._send_to_controller(request, "results")
        return {
            result.name: error_for(result.error_code, result.error_message, response.throttle_time_ms)
            for result in response.results
        }

    async def describe_configs(
        self,
        resources: Iterable[Resource],
        keys: Collection[str] | None = None,
        *,
        synonyms: bool = True,
        documentation: bool = False,
    ) -> dict[Resource, list[ConfigEntry] | KafkaError]:
        """Describe the configs of each resource, all or those in `keys`; each broker describes its own."""
        by_node: defaultdict[int | None, list[Resource]] = defaultdict(list)
        for resource in resources:
            by_node[responsible_node(resource)].append(resource)
        outcomes: dict[Resource, list[ConfigEntry] | KafkaError] = {}
        for node, requested in by_node.items():
            request_resources = [describe_configs_resource(resource, keys) for resource in requested]
            response: DescribeConfigsResponse = await self.send(
                DescribeConfigsRequest(
                    resources=request_resources,
                    include_synonyms=synonyms,
                    include_documentation=documentation,
                ),
                node,
            )
            for result in response.results:
                resource = Resource(ResourceKind(result.resource_type), result.resource_name)
                outcomes[resource] = config_entries(result)
        return outcomes

    async def alter_configs(
        self, edits: Mapping[Resource, Sequence[AlterConfigOp]], *, validate_only: bool = False
    ) -> dict[Resource, KafkaError | None]:
        """Alter the configs of each resource, or with `validate_only` check whether that is possible.

        None for success. Each broker alters its own. Not retried after a lost connection: the broker may have acted.
        """
        by_node: defaultdict[int | None, list[Resource]] = defaultdict(list)
        for resource in edits:
            by_node[responsible_node(resource)].append(resource)
        outcomes: dict[Resource, KafkaError | None] = {}
        for node, resources in by_node.items():
            request = IncrementalAlterConfigsRequest(
                resources=[alter_configs_resource(resource, edits[resource]) for resource in resources],
                validate_only=validate_only,
            )
            response: IncrementalAlterConfigsResponse = await self.cluster.send(request, node)
            for result in response.responses:
                resource = Resource(ResourceKind(result.resource_type), result.resource_name)
                outcomes[resource] = error_for(result.error_code, result.error_message)
        return outcomes

    async def replace_configs(
        self, resource: Resource, values: Mapping[str, str], *, validate_only: bool = False
    ) -> None:
        """Replace all configs of a resource; not retried.

        :raises KafkaError: From the broker.
        """
        request = AlterConfigsRequest([replace_configs_resource(resource, values)], validate_only)
        response: AlterConfigsResponse = await self.cluster.send(request, responsible_node(resource))
        [result] = response.responses
        check(result.error_code, result.error_message)

    async def list_config_resources(self, kinds: Iterable[ResourceKind] = ()) -> list[Resource]:
        """List the resources of those kinds that have configs, or of all kinds.

        :raises KafkaError: From the broker.
        """
        response: ListConfigResourcesResponse = await self.send(
            ListConfigResourcesRequest(resource_types=list(kinds))
        )
        check(response.error_code)
        return parse_list_config_resources_response(response)

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, ListedOffset | KafkaError]:
        """Return the offset of each spec in its partition."""
        return await list_offsets(self.cluster, specs, isolation)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        """Delete records before each offset (HIGH_WATERMARK: all); return the new log start offsets."""
        outcomes: dict[TopicPartition, int | KafkaError] = {}
        by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp in offsets:
            try:
                by_leader[await self.cluster.leader(tp)].append(tp)
            except KafkaError as error:
                outcomes[tp] = error
        for leader, partitions in by_leader.items():
            request = delete_records_request({tp: offsets[tp] for tp in partitions}, self.timeout_ms)
            outcomes.update(parse_delete_records_response(await self.cluster.send(request, leader)))
        return outcomes

    async def describe_cluster(self, *, fenced: bool = False) -> ClusterDescription:
        """Describe brokers, controller and id of the cluster; with `fenced` also brokers that do not serve (since 4.0).

        :raises KafkaError: From the broker.
        """
        try:
            response: DescribeClusterResponse = await self.send(
                DescribeClusterRequest(include_fenced_brokers=fenced)
            )
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            return cluster_from_metadata(await self.cluster.refresh([]))
        check(response.error_code, response.error_message)
        return parse_describe_cluster_response(response)

    async def describe_user_scram_credentials(
        self, users: Collection[str] | None = None
    ) -> dict[str, dict[ScramMechanism, int] | KafkaError]:
        """Describe the SCRAM mechanisms and iterations of those users, or of all.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED.
        """
        return scram.parse_describe_scram_response(await self.send(scram.describe_scram_request(users)))

    async def alter_user_scram_credentials(
        self, alterations: Iterable[scram.Upsertion | scram.UserScramCredentialDeletion]
    ) -> dict[str, KafkaError | None]:
        """Set or delete credentials, one of each user at a time; None for success."""
        return scram.parse_alter_scram_response(
            await self._send_to_controller(scram.alter_scram_request(alterations), "results")
        )

    async def describe_client_quotas(
        self, parts: quotas.Entity = (), *, strict: bool = False
    ) -> dict[quotas.Entity, dict[str, float]]:
        """Describe the quotas of entities that have these parts, or of all; with `strict`, no other parts.

        :raises KafkaError: INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED.
        """
        return quotas.parse_describe_quotas_response(
            await self.send(quotas.describe_quotas_request(parts, strict=strict))
        )

    async def alter_client_quotas(
        self, alterations: Iterable[quotas.ClientQuotaAlteration], *, validate_only: bool = False
    ) -> dict[quotas.Entity, KafkaError | None]:
        """Set and remove quotas; None for success."""
        request = quotas.alter_quotas_request(alterations, validate_only=validate_only)
        return quotas.parse_alter_quotas_response(await self._send_to_controller(request, "entries"))

    async def elect_leaders(
        self,
        partitions: Collection[TopicPartition] | None = None,
        election: cluster_control.ElectionType = cluster_control.ElectionType.PREFERRED,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders of those partitions, or of all that need one; None for a new leader.

        :raises KafkaError: For the whole request, such as REQUEST_TIMED_OUT.
        """
        return cluster_control.parse_elect_leaders_response(
            await self._send_once(
                cluster_control.elect_leaders_request(election, partitions, self.timeout_ms)
            )
        )

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Move partitions to other node ids, or (None) cancel that; None in the outcome for success.

        :raises KafkaError: For the whole request, such as REQUEST_TIMED_OUT.
        """
        request = cluster_control.alter_reassignments_request(
            targets, allow_replication_factor_change, self.timeout_ms
        )
        return cluster_control.parse_alter_reassignments_response(await self._send_once(request))

    async def list_partition_reassignments(self) -> dict[TopicPartition, cluster_control.Reassignment]:
        """List reassignments in progress.

        :raises KafkaError: From the broker.
        """
        return cluster_control.parse_list_reassignments_response(
            await self.send(ListPartitionReassignmentsRequest(self.timeout_ms))
        )

    async def describe_features(self) -> list[cluster_control.FeatureDescription]:
        """Describe the features of the cluster: levels that the broker supports, and finalized levels.

        :raises KafkaError: From the broker.
        """
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=__version__)
        return cluster_control.parse_features(await self.send(request))

    async def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: UpgradeType = UpgradeType.UPGRADE,
        *,
        validate_only: bool = False,
    ) -> None:
        """Set the levels of features, all or none.

        :raises KafkaError: INVALID_UPDATE_VERSION, or another error of the broker.
        """
        request = cluster_control.update_features_request(
            levels, upgrade_type, validate_only, self.timeout_ms
        )
        response = await self._send_once(request)
        check(response.error_code, response.error_message)

    async def describe_metadata_quorum(self) -> cluster_control.QuorumDescription:
        """Describe the quorum of the metadata.

        :raises KafkaError: From the broker.
        """
        return cluster_control.parse_describe_quorum_response(
            await self.send(cluster_control.describe_quorum_request())
        )

    async def describe_log_dirs(
        self, node_id: int, partitions: Collection[TopicPartition] | None = None
    ) -> list[log_dirs.LogDirDescription]:
        """Describe the log directories of a broker, with its replicas of those partitions, or of all.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED.
        """
        return log_dirs.parse_describe_log_dirs_response(
            await self.send(log_dirs.describe_log_dirs_request(partitions), node_id)
        )

    async def alter_replica_log_dirs(
        self, node_id: int, targets: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Start to move replicas of a broker to other log directories of it; None for success."""
        return log_dirs.parse_alter_log_dirs_response(
            await self.send(log_dirs.alter_log_dirs_request(targets), node_id)
        )

    async def unregister_broker(self, node_id: int) -> None:
        """Unregister a broker that will not return.

        :raises KafkaError: BROKER_ID_NOT_REGISTERED, or another error of the broker.
        """
        response = await self._send_once(UnregisterBrokerRequest(node_id))
        check(response.error_code, response.error_message)

    async def _send_once(self, request: Message) -> Any:
        """Send a request that changes something to any broker. Not retried after a lost connection: the broker may
        have acted.
        """
        return await self.cluster.send(request, timeout_ms=self._answer_timeout_ms)

    async def describe_acls(self, acl_filter: AclFilter | None = None) -> list[AclBinding]:
        """Return the ACLs that a filter matches, or all.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED; SECURITY_DISABLED without an authorizer.
        """
        return acls.parse_describe_acls_response(
            await self.send(acls.describe_acls_request(acl_filter or AclFilter()))
        )

    async def describe_acl_use(self) -> acls.AclUse:
        """Return the ACLs that have allowed or denied something on any broker; only Barnabas supports this.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED; UNSUPPORTED_VERSION from other brokers.
        """
        nodes = sorted(self.cluster.metadata.nodes)
        return acls.combine_acl_use_responses(
            [await self.send(DescribeAclUseRequest(), node) for node in nodes]
        )

    async def create_acls(self, bindings: Iterable[AclBinding]) -> list[KafkaError | None]:
        """Create each ACL; an existing one is a success. None for success."""
        return acls.parse_create_acls_response(
            await self._send_to_controller(acls.create_acls_request(bindings), "results")
        )

    async def delete_acls(
        self, filters: Iterable[AclFilter]
    ) -> list[dict[AclBinding, KafkaError | None] | KafkaError]:
        """Delete the ACLs that each filter matches; return them, with an error if an ACL could not be deleted."""
        return acls.parse_delete_acls_response(
            await self._send_to_controller(acls.delete_acls_request(filters), "filter_results")
        )

    async def roll_back(
        self, resource: str, revision: int, *, validate_only: bool = False
    ) -> rollback.Rollback:
        """Restore a resource, named as in the audit, to a revision; only Barnabas supports this.

        :raises KafkaError: From the broker; UNSUPPORTED_VERSION from other brokers.
        """
        request = rollback.rollback_request(resource, revision, validate_only=validate_only)
        kind, _, name = resource.partition("/")
        node = int(name) if kind == "broker" and name.isdecimal() else None
        response = await self.cluster.send(request, node, timeout_ms=self._answer_timeout_ms)
        return rollback.parse_rollback_response(response)

    async def describe_trash(self) -> list[trash.TrashedTopicDescription]:
        """Return the topics in the trash, the latest deleted first; only Barnabas supports this.

        :raises KafkaError: UNSUPPORTED_VERSION from other brokers.
        """
        return await trash.describe_trash(self.cluster)

    async def undelete_topic(self, topic: trash.Trashed, new_name: str | None = None) -> trash.UndeletedTopic:
        """Restore a topic from the trash, under another name if one is given.

        :raises KafkaError: From the broker.
        """
        request = UndeleteTopicRequest(*topic, new_name=new_name, timeout_ms=self.timeout_ms)
        return trash.parse_undelete_response(await self._send_once(request))

    async def import_segments(
        self, node_id: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, segments.ImportedLog | KafkaError]:
        """Import the segment files that a job has written for partitions of a broker; only Barnabas can.

        :raises KafkaError: UNSUPPORTED_VERSION from any other broker.
        """
        request = segments.import_segments_request(partitions)
        response = await self.cluster.send(request, node_id, timeout_ms=self._answer_timeout_ms)
        return segments.parse_import_response(response)

    async def purge_topics(self, topics: Iterable[trash.Trashed]) -> dict[trash.Trashed, KafkaError | None]:
        """Delete topics in the trash for good; None for success."""
        return trash.parse_purge_topics_response(await self._send_once(trash.purge_topics_request(topics)))

    async def _send_to_controller(self, request: Message, results: str) -> Any:
        """Send a request to the controller, and again to the next one if it has changed.

        `results` names the response's field with an outcome per item. Not retried after a lost connection: the broker
        may have acted.
        """
        for attempt in range(1, _CONTROLLER_ATTEMPTS_MAX + 1):
            controller = self.cluster.metadata.controller_id
            node = controller if controller in self.cluster.metadata.nodes else None
            response = await self.cluster.send(request, node, timeout_ms=self._answer_timeout_ms)
            outcomes = getattr(response, results)
            if all(outcome.error_code != ErrorCode.NOT_CONTROLLER for outcome in outcomes):
                break
            await self.cluster.retry.pause(attempt)
            await self.cluster.refresh([])
        return response

    @property
    def _answer_timeout_ms(self) -> int:
        return self.timeout_ms + self.cluster.request_timeout_ms
