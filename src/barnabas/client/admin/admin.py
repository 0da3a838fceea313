"""Administration: topics, partitions, configs, offsets, records, the cluster itself.

Calls that act on several things give one outcome for each: the result, or the KafkaError that the broker
answered for it alone. `raise_errors` turns the first error among them into an exception.
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
    altered,
    config_entries,
    creatable,
    created,
    deletion,
    described,
    description,
    description_from,
    growing,
    listed_resources,
    low_watermarks,
    replaced,
    responsible_node,
)
from barnabas.client.admin.offsets import Isolation, ListedOffset, OffsetSpec, list_offsets
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import check, error_for
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.alter_op import AlterConfigOp
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.acls import AclBinding, AclFilter
from barnabas.wire.barnabas_messages.describe_acl_use import DescribeAclUseRequest
from barnabas.wire.barnabas_messages.describe_trash import DescribeTrashRequest
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.features import UpgradeType
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
    """Raise the first KafkaError among `outcomes`.

    :raises KafkaError: When there is one.
    """
    for outcome in outcomes:
        if isinstance(outcome, KafkaError):
            raise outcome


class Admin:
    """Administers the cluster that it is given; has no state of its own."""

    def __init__(self, cluster: ClusterClient, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self.cluster = cluster
        self.timeout_ms = timeout_ms  #: how long brokers may work on one call

    async def send(self, request: Message, node: int | None = None) -> Any:
        """Any request to `node`, or to whichever broker is reached, tried again when a connection is lost.

        Gives the response declared beside the request; reading its error codes is the caller's part.

        :raises BrokerConnectionError: When no broker answers.
        """
        return await self.cluster.retrying(lambda: self.cluster.send(request, node))

    async def describe_topics(
        self, names: Collection[str] | None = None
    ) -> dict[str, TopicInfo | KafkaError]:
        """The topics of those names, or all; an unknown one has UNKNOWN_TOPIC_OR_PARTITION."""
        metadata = await self.cluster.retrying(lambda: self.cluster.refresh(names))
        found = metadata.topics if names is None else {name: metadata.topics[name] for name in names}
        return {name: topic.error or topic for name, topic in sorted(found.items())}

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create each topic, or with `validate_only` find out whether it could be."""
        request = CreateTopicsRequest(
            topics=[creatable(topic) for topic in topics],
            timeout_ms=self.timeout_ms,
            validate_only=validate_only,
        )
        response: CreateTopicsResponse = await self._send_to_controller(request, "topics")
        return {result.name: created(result) for result in response.topics}

    async def delete_topics(self, names: Collection[str]) -> dict[str, KafkaError | None]:
        """Delete each topic; None stands for success."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names],
            topic_names=list(names),
            timeout_ms=self.timeout_ms,
        )
        response: DeleteTopicsResponse = await self._send_to_controller(request, "responses")
        return {
            each.name or "": error_for(each.error_code, each.error_message) for each in response.responses
        }

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
    ) -> dict[str, KafkaError | None]:
        """Grow each topic to its count of partitions; `assignments` are node ids of the new ones in order."""
        partitions = assignments or {}
        request = CreatePartitionsRequest(
            topics=[growing(name, count, partitions.get(name)) for name, count in counts.items()],
            timeout_ms=self.timeout_ms,
            validate_only=validate_only,
        )
        response: CreatePartitionsResponse = await self._send_to_controller(request, "results")
        return {each.name: error_for(each.error_code, each.error_message) for each in response.results}

    async def describe_configs(
        self,
        resources: Iterable[Resource],
        keys: Collection[str] | None = None,
        *,
        synonyms: bool = True,
        documentation: bool = False,
    ) -> dict[Resource, list[ConfigEntry] | KafkaError]:
        """The configs of each resource, all or those named in `keys`; a broker is asked for its own."""
        by_node: defaultdict[int | None, list[Resource]] = defaultdict(list)
        for resource in resources:
            by_node[responsible_node(resource)].append(resource)
        outcomes: dict[Resource, list[ConfigEntry] | KafkaError] = {}
        for node, asked in by_node.items():
            wanted = [described(resource, keys) for resource in asked]
            response: DescribeConfigsResponse = await self.send(
                DescribeConfigsRequest(
                    resources=wanted, include_synonyms=synonyms, include_documentation=documentation
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
        """Edit the configs of each resource, or with `validate_only` find out whether it could be done.

        None stands for success. A broker is asked to alter its own. Not tried again when a connection is lost:
        the broker may have acted.
        """
        by_node: defaultdict[int | None, list[Resource]] = defaultdict(list)
        for resource in edits:
            by_node[responsible_node(resource)].append(resource)
        outcomes: dict[Resource, KafkaError | None] = {}
        for node, resources in by_node.items():
            request = IncrementalAlterConfigsRequest(
                resources=[altered(resource, edits[resource]) for resource in resources],
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
        """Give a resource these configs and no others, whatever was set before; not tried again.

        :raises KafkaError: What the broker answered.
        """
        request = AlterConfigsRequest([replaced(resource, values)], validate_only)
        response: AlterConfigsResponse = await self.cluster.send(request, responsible_node(resource))
        [result] = response.responses
        check(result.error_code, result.error_message)

    async def list_config_resources(self, kinds: Iterable[ResourceKind] = ()) -> list[Resource]:
        """The resources of those kinds that have configs, or of all kinds.

        :raises KafkaError: What the broker answered.
        """
        response: ListConfigResourcesResponse = await self.send(
            ListConfigResourcesRequest(resource_types=list(kinds))
        )
        check(response.error_code)
        return listed_resources(response)

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, ListedOffset | KafkaError]:
        """The offset that each spec stands for in its partition."""
        return await list_offsets(self.cluster, specs, isolation)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        """Delete what lies before each offset (HIGH_WATERMARK: everything); gives the new first offsets."""
        outcomes: dict[TopicPartition, int | KafkaError] = {}
        by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp in offsets:
            try:
                by_leader[await self.cluster.leader(tp)].append(tp)
            except KafkaError as error:
                outcomes[tp] = error
        for leader, partitions in by_leader.items():
            request = deletion({tp: offsets[tp] for tp in partitions}, self.timeout_ms)
            outcomes.update(low_watermarks(await self.cluster.send(request, leader)))
        return outcomes

    async def describe_cluster(self, *, fenced: bool = False) -> ClusterDescription:
        """Brokers, controller and id of the cluster; with `fenced` brokers that do not serve, too (since 4.0).

        :raises KafkaError: What the broker answered.
        """
        try:
            response: DescribeClusterResponse = await self.send(
                DescribeClusterRequest(include_fenced_brokers=fenced)
            )
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            return description_from(await self.cluster.refresh([]))
        check(response.error_code, response.error_message)
        return description(response)

    async def describe_user_scram_credentials(
        self, users: Collection[str] | None = None
    ) -> dict[str, dict[ScramMechanism, int] | KafkaError]:
        """By which mechanisms users can log in, and with how many iterations: those users, or all.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED.
        """
        return scram.described(await self.send(scram.describing(users)))

    async def alter_user_scram_credentials(
        self, alterations: Iterable[scram.Upsertion | scram.UserScramCredentialDeletion]
    ) -> dict[str, KafkaError | None]:
        """Set or delete credentials, one of each user at a time; None stands for success."""
        return scram.altered(await self._send_to_controller(scram.altering(alterations), "results"))

    async def describe_client_quotas(
        self, parts: quotas.Entity = (), *, strict: bool = False
    ) -> dict[quotas.Entity, dict[str, float]]:
        """The quotas of entities that have these parts, else of all; `strict`: and that have no others.

        :raises KafkaError: INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED.
        """
        return quotas.described(await self.send(quotas.describing(parts, strict=strict)))

    async def alter_client_quotas(
        self, alterations: Iterable[quotas.ClientQuotaAlteration], *, validate_only: bool = False
    ) -> dict[quotas.Entity, KafkaError | None]:
        """Set quotas and take them away; None stands for success."""
        request = quotas.altering(alterations, validate_only=validate_only)
        return quotas.altered(await self._send_to_controller(request, "entries"))

    async def elect_leaders(
        self,
        partitions: Collection[TopicPartition] | None = None,
        election: cluster_control.ElectionType = cluster_control.ElectionType.PREFERRED,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders for those partitions, or for all that need it; None stands for a new leader.

        :raises KafkaError: What the broker says of the whole, REQUEST_TIMED_OUT for one.
        """
        return cluster_control.parse_elect_leaders_response(
            await self._order(cluster_control.elect_leaders_request(election, partitions, self.timeout_ms))
        )

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Move partitions to other node ids, or (None) call that off; None in the outcome stands for success.

        :raises KafkaError: What the broker says of the whole, REQUEST_TIMED_OUT for one.
        """
        request = cluster_control.reassigning(targets, allow_replication_factor_change, self.timeout_ms)
        return cluster_control.reassigned(await self._order(request))

    async def list_partition_reassignments(self) -> dict[TopicPartition, cluster_control.Reassignment]:
        """The partitions that are moving.

        :raises KafkaError: What the broker answered.
        """
        return cluster_control.parse_list_reassignments_response(
            await self.send(ListPartitionReassignmentsRequest(self.timeout_ms))
        )

    async def describe_features(self) -> list[cluster_control.FeatureDescription]:
        """The features of the cluster: what the broker reached supports, and the levels in use.

        :raises KafkaError: What the broker answered.
        """
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=__version__)
        return cluster_control.features_in(await self.send(request))

    async def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: UpgradeType = UpgradeType.UPGRADE,
        *,
        validate_only: bool = False,
    ) -> None:
        """Move features to other levels, all or none.

        :raises KafkaError: INVALID_UPDATE_VERSION and whatever else the broker answered.
        """
        request = cluster_control.updating(levels, upgrade_type, validate_only, self.timeout_ms)
        response = await self._order(request)
        check(response.error_code, response.error_message)

    async def describe_metadata_quorum(self) -> cluster_control.QuorumDescription:
        """Who keeps cluster state.

        :raises KafkaError: What the broker answered.
        """
        return cluster_control.quorum_in(await self.send(cluster_control.describing_quorum()))

    async def describe_log_dirs(
        self, node_id: int, partitions: Collection[TopicPartition] | None = None
    ) -> list[log_dirs.LogDirDescription]:
        """The log directories of a broker, and in them its replicas of those partitions, or of all.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED.
        """
        return log_dirs.described(await self.send(log_dirs.describing(partitions), node_id))

    async def alter_replica_log_dirs(
        self, node_id: int, targets: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to bring replicas of a broker to other directories of it; None stands for success."""
        return log_dirs.moved(await self.send(log_dirs.moving(targets), node_id))

    async def unregister_broker(self, node_id: int) -> None:
        """Forget a broker that is gone for good.

        :raises KafkaError: BROKER_ID_NOT_REGISTERED and whatever else the broker answered.
        """
        response = await self._order(UnregisterBrokerRequest(node_id))
        check(response.error_code, response.error_message)

    async def _order(self, request: Message) -> Any:
        """Any broker takes it. Not tried again when a connection is lost: the broker may have acted."""
        return await self.cluster.send(request, timeout_ms=self._answer_timeout_ms)

    async def describe_acls(self, wanted: AclFilter | None = None) -> list[AclBinding]:
        """The ACLs that a filter means, or all.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED; SECURITY_DISABLED where no authorizer is configured.
        """
        return acls.parse_describe_acls_response(
            await self.send(acls.describe_acls_request(wanted or AclFilter()))
        )

    async def describe_acl_use(self) -> acls.AclUse:
        """Which ACLs have decided something at any broker; only Barnabas tells.

        :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED; UNSUPPORTED_VERSION of any other broker.
        """
        nodes = sorted(self.cluster.metadata.nodes)
        return acls.use_described([await self.send(DescribeAclUseRequest(), node) for node in nodes])

    async def create_acls(self, bindings: Iterable[AclBinding]) -> list[KafkaError | None]:
        """Make each ACL; one that is there already is as good as made. None stands for success."""
        return acls.created(await self._send_to_controller(acls.creating(bindings), "results"))

    async def delete_acls(
        self, filters: Iterable[AclFilter]
    ) -> list[dict[AclBinding, KafkaError | None] | KafkaError]:
        """Remove what each filter means; gives what that was, with why an ACL stays."""
        return acls.deleted(await self._send_to_controller(acls.deleting(filters), "filter_results"))

    async def roll_back(
        self, resource: str, revision: int, *, validate_only: bool = False
    ) -> rollback.Rollback:
        """Let a resource, named as in the audit, be as it was at a revision; only Barnabas can.

        :raises KafkaError: Why not; UNSUPPORTED_VERSION of any other broker.
        """
        request = rollback.rolling_back(resource, revision, validate_only=validate_only)
        kind, _, name = resource.partition("/")
        node = int(name) if kind == "broker" and name.isdecimal() else None
        response = await self.cluster.send(request, node, timeout_ms=self._answer_timeout_ms)
        return rollback.rolled_back(response)

    async def describe_trash(self) -> list[trash.TrashedTopicDescription]:
        """Deleted topics that can be brought back, the latest first; only Barnabas has any.

        :raises KafkaError: UNSUPPORTED_VERSION of any other broker.
        """
        return trash.described(await self.send(DescribeTrashRequest()))

    async def undelete_topic(self, topic: trash.Trashed, new_name: str | None = None) -> trash.UndeletedTopic:
        """Bring a deleted topic back, under another name if one is given.

        :raises KafkaError: Why not.
        """
        request = UndeleteTopicRequest(*topic, new_name=new_name, timeout_ms=self.timeout_ms)
        return trash.undeleted(await self._order(request))

    async def import_segments(
        self, node_id: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, segments.ImportedLog | KafkaError]:
        """Import the segment files that a job has written for partitions of a broker; only Barnabas can.

        :raises KafkaError: UNSUPPORTED_VERSION from any other broker.
        """
        request = segments.import_request(partitions)
        response = await self.cluster.send(request, node_id, timeout_ms=self._answer_timeout_ms)
        return segments.import_results(response)

    async def purge_topics(self, topics: Iterable[trash.Trashed]) -> dict[trash.Trashed, KafkaError | None]:
        """Let go of deleted topics for good; None stands for success."""
        return trash.purged(await self._order(trash.purging(topics)))

    async def _send_to_controller(self, request: Message, results: str) -> Any:
        """To the broker that stands for the controller, again when that is no longer it.

        `results` names the response's field with an outcome per item.
        Not tried again when a connection is lost: the broker may have acted.
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
