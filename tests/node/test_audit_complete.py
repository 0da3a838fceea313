"""Every API that changes the cluster is audited: each change once, with the value before and after."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import ANY

import pytest

import barnabas.api
from barnabas.api import registry
from barnabas.base.ids import TopicPartition
from barnabas.client.core.metadata import TopicInfo
from barnabas.metadata.audit.events import AuditOutcome
from barnabas.telemetry.logs import clear_level
from barnabas.testing import EmbeddedBroker
from barnabas.wire.barnabas_messages.import_segments import ImportSegmentsRequest, ImportSegmentsTopic
from barnabas.wire.barnabas_messages.purge_topics import PurgeTopicsRequest, TopicToPurge
from barnabas.wire.barnabas_messages.rollback_resource import RollbackResourceRequest
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from barnabas.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.incremental_alter_configs import AlterableConfig as Edit
from barnabas.wire.messages.incremental_alter_configs import AlterConfigsResource as Edited
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.schema import Message
from support.audit import AUDITED, events
from support.batches import batch
from support.control import SECOND, add_broker, remove_leader
from support.log_dirs import move
from support.restored_logs import write_restored_log
from support.transactions import (
    BEFORE_IMPLICIT,
    marker,
    transactional,
    transactional_produce_request,
    write_markers_request,
)
from support.waiting import until
from support.wire import Wire

#: APIs that change only clients' data in the cluster: records, offsets, members, transactions.
OF_CLIENTS = frozenset(
    {
        *("Produce", "OffsetCommit", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"),
        *("TxnOffsetCommit", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat"),
        *("PushTelemetry", "SaslHandshake", "SaslAuthenticate", "UpdateRaftVoter", "RestoreTopicOffsets"),
    }
)
READING = ("Describe", "List", "Get")
#: More APIs that read; topics created by Metadata and FindCoordinator are audited under those names.
ALSO_READING = frozenset(
    {
        *("ApiVersions", "ConsumerGroupDescribe", "Fetch", "FindCoordinator", "Metadata", "OffsetFetch"),
        "OffsetForLeaderEpoch",
    }
)
#: APIs without effect on a single broker, whose quorum has one voter.
ALWAYS_REFUSED = frozenset({"AddRaftVoter", "RemoveRaftVoter"})
#: APIs for clients that have logged in; `test_delegation_tokens.py` has their events.
AFTER_A_LOGIN = frozenset({"CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"})

APIS = registry.build(barnabas.api)

#: (resource, key, before, after)
Change = tuple[str, str, Any, Any]


class World(NamedTuple):
    """A broker with two log directories."""

    kafka: EmbeddedBroker
    directory: Path

    @property
    def own(self) -> int:
        return self.kafka.server.broker.broker_id

    def tp(self, topic: str) -> Path:
        """Return the directory that does not have a topic's first partition."""
        return next(
            path
            for path in (self.directory / "a", self.directory / "b")
            if not (path / f"{topic}-0").is_dir()
        )

    def do(self, request: Message, version: int | None = None) -> Any:
        with Wire(self.kafka.port) as wire:
            return wire.ask(request, version)


class Step(NamedTuple):
    """A request, its preparation, and the expected audit events."""

    request: Callable[[World], Message]
    changes: Callable[[World], list[Change]]
    before: Callable[[World], object] = lambda world: None


def configured(kind: int, name: str, key: str, value: str) -> Message:
    return IncrementalAlterConfigsRequest([Edited(kind, name, [Edit(key, 0, value)])])


def reassigned(world: World, replicas: list[int] | None) -> Message:
    topics = [ReassignableTopic("orders", [ReassignablePartition(0, replicas)])]
    return AlterPartitionReassignmentsRequest(topics=topics)


def commit_offsets(world: World) -> None:
    client = world.kafka.client
    client.groups.commit_offsets("readers", {TopicPartition("orders", index): index + 1 for index in (0, 1)})


def restored(world: World) -> None:
    topic = world.kafka.client.admin.describe_topics(["made"])["made"]
    assert isinstance(topic, TopicInfo)
    [directory] = world.directory.glob("*/made-0")
    write_restored_log(directory, topic.topic_id, (5, 8))


def begin_transaction(world: World) -> None:
    with Wire(world.kafka.port) as wire:
        wire.ask(transactional_produce_request("orders", transactional(77, 0, b"x")), BEFORE_IMPLICIT)


def rolled_back(world: World, resource: str) -> Message:
    """Roll back to before the resource's first change."""

    def revisions() -> list[int]:
        return [each.revision for each in events(world.kafka) if each.resource == resource]

    until(revisions)
    return RollbackResourceRequest(resource, min(revisions()) - 1)


def deleted(_: World) -> Message:
    return DeleteTopicsRequest([DeleteTopicState("orders")], timeout_ms=5000)


def deletion(world: World) -> list[Change]:
    return [
        ("topic/orders", "partitions", 2, None),
        ("topic/orders", "replicas", [[world.own], [world.own]], None),
        ("topic/orders", "topic id", ANY, None),
        ("topic/orders", "in the trash", None, ANY),
        ("topic/orders", "segment.ms", "7000", None),
    ]


def produce(world: World) -> None:
    with Wire(world.kafka.port) as wire:
        wire.produce("orders", batch(b"a", b"b", b"c"))


STEPS = [
    Step(
        lambda _: CreateTopicsRequest([CreatableTopic("orders", 1, 1)]),
        lambda world: [
            ("topic/orders", "partitions", None, 1),
            ("topic/orders", "replicas", None, [[world.own]]),
            ("topic/orders", "topic id", None, ANY),
        ],
    ),
    Step(
        lambda _: CreatePartitionsRequest([CreatePartitionsTopic("orders", 2, None)], 5000),
        lambda world: [
            ("topic/orders", "partitions", 1, 2),
            ("topic/orders", "replicas", [[world.own]], [[world.own], [world.own]]),
        ],
    ),
    Step(
        lambda _: configured(2, "orders", "retention.ms", "5000"),
        lambda _: [("topic/orders", "retention.ms", None, "5000")],
    ),
    Step(
        lambda _: AlterConfigsRequest(
            [AlterConfigsResource(2, "orders", [AlterableConfig("segment.ms", "7000")])]
        ),
        lambda _: [
            ("topic/orders", "retention.ms", "5000", None),
            ("topic/orders", "segment.ms", None, "7000"),
        ],
    ),
    Step(
        lambda world: configured(4, str(world.own), "log.retention.ms", "8000"),
        lambda world: [(f"broker/{world.own}", "log.retention.ms", None, "8000")],
    ),
    Step(
        lambda world: rolled_back(world, f"broker/{world.own}"),
        lambda world: [(f"broker/{world.own}", "log.retention.ms", "8000", None)],
    ),
    Step(
        lambda world: configured(8, str(world.own), "barnabas.audit", "ERROR"),
        lambda world: [(f"broker-logger/{world.own}", "barnabas.audit", ANY, "ERROR")],
        lambda _: clear_level("barnabas.audit"),
    ),
    Step(
        lambda _: configured(32, "readers", "consumer.session.timeout.ms", "50000"),
        lambda _: [("group/readers", "consumer.session.timeout.ms", None, "50000")],
    ),
    Step(
        lambda _: DeleteRecordsRequest([DeleteRecordsTopic("orders", [DeleteRecordsPartition(0, 2)])], 5000),
        lambda _: [("topic/orders", "partition 0 log start offset", 0, 2)],
        produce,
    ),
    Step(
        lambda _: CreateAclsRequest([AclCreation(2, "ord", 4, "User:alice", "*", 3, 3)]),
        lambda _: [("topic/ord*", "acl User:alice ALLOW READ from *", None, ANY)],
    ),
    Step(
        lambda _: DeleteAclsRequest([DeleteAclsFilter(2, "ord", 4, None, None, 1, 1)]),
        lambda _: [("topic/ord*", "acl User:alice ALLOW READ from *", ANY, None)],
    ),
    Step(
        lambda _: AlterClientQuotasRequest(
            [EntryData([EntityData("user", "alice")], [OpData("producer_byte_rate", 1024.0)])]
        ),
        lambda _: [("quota/user=alice", "producer_byte_rate", None, 1024.0)],
    ),
    Step(
        lambda _: AlterUserScramCredentialsRequest(
            [], [ScramCredentialUpsertion("alice", 1, 4096, b"salt" * 4, b"p" * 32)]
        ),
        lambda _: [("user/alice", "SCRAM-SHA-256", None, {"iterations": 4096})],
    ),
    Step(
        lambda _: AlterUserScramCredentialsRequest([ScramCredentialDeletion("alice", 1)], []),
        lambda _: [("user/alice", "SCRAM-SHA-256", {"iterations": 4096}, None)],
    ),
    Step(
        lambda _: OffsetDeleteRequest(
            "readers", [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]
        ),
        lambda _: [("group/readers", "offset orders-0", 1, None)],
        commit_offsets,
    ),
    Step(
        lambda _: DeleteGroupsRequest(["readers"]),
        lambda _: [("group/readers", "type", "classic", None), ("group/readers", "offset orders-1", 2, None)],
        lambda world: world.kafka.client.groups.offsets("readers"),
    ),
    Step(
        lambda world: move(world.tp("orders"), "orders", 0),
        lambda world: [("topic/orders", f"partition 0 log dir on broker {world.own}", ANY, ANY)],
    ),
    Step(
        lambda _: write_markers_request(marker(77, "orders", commit=False)),
        lambda _: [("topic/orders", "partition 0 transaction of producer 77", "ongoing", "aborted")],
        begin_transaction,
    ),
    Step(
        lambda world: reassigned(world, [world.own, SECOND]),
        lambda world: [
            ("topic/orders", "partition 0 adding", [], [SECOND]),
            ("topic/orders", "partition 0 replicas", [world.own], [world.own, SECOND]),
        ],
        lambda world: add_broker(world.kafka),
    ),
    Step(
        lambda world: reassigned(world, None),
        lambda world: [
            ("topic/orders", "partition 0 adding", [SECOND], []),
            ("topic/orders", "partition 0 replicas", [world.own, SECOND], [world.own]),
        ],
    ),
    Step(
        lambda _: ElectLeadersRequest(0, [TopicPartitions("orders", [0])]),
        lambda world: [("topic/orders", "partition 0 leader", -1, world.own)],
        lambda world: remove_leader(world.kafka, "orders"),
    ),
    Step(
        lambda _: UnregisterBrokerRequest(SECOND),
        lambda _: [(f"broker/{SECOND}", key, ANY, None) for key in ("cordoned", "endpoints", "fenced")],
        lambda world: add_broker(world.kafka, fenced=True),
    ),
    Step(
        lambda _: UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey("transaction.version", 1, upgrade_type=2)]
        ),
        lambda _: [("feature/transaction.version", "level", 2, 1)],
    ),
    Step(deleted, deletion),
    Step(
        lambda _: UndeleteTopicRequest("orders"),
        lambda world: [
            ("topic/orders", "partitions", None, 2),
            ("topic/orders", "replicas", None, [[world.own], [world.own]]),
            ("topic/orders", "topic id", None, ANY),
            ("topic/orders", "in the trash", ANY, None),
            ("topic/orders", "segment.ms", None, "7000"),
        ],
    ),
    Step(deleted, deletion),
    Step(
        lambda _: PurgeTopicsRequest([TopicToPurge("orders")]),
        lambda _: [("topic/orders", "in the trash", ANY, None)],
    ),
    Step(
        lambda _: MetadataRequest([MetadataRequestTopic(name="made")]),
        lambda world: [
            ("topic/made", "partitions", None, 1),
            ("topic/made", "replicas", None, [[world.own]]),
            ("topic/made", "topic id", None, ANY),
        ],
    ),
    Step(
        lambda _: ImportSegmentsRequest([ImportSegmentsTopic("made", [0])]),
        lambda _: [("topic/made", "partition 0 imported offsets", None, [5, 9])],
        restored,
    ),
]


@contextmanager
def running(directory: Path) -> Iterator[World]:
    with ExitStack() as stack:
        settings = {
            "log.dirs": f"{directory / 'a'},{directory / 'b'}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        yield World(stack.enter_context(EmbeddedBroker({**AUDITED, **settings})), directory)


def audited_changes(world: World) -> list[tuple[str, Change]]:
    """Return (API, change) of every audited change, without automatically created internal topics."""
    return [
        (each.api, (each.resource, each.key or "", each.before, each.after))
        for each in events(world.kafka)
        if each.outcome is AuditOutcome.CHANGED and not each.resource.startswith("topic/__")
    ]


@pytest.mark.parametrize("interrupted", ["never", "restarted", "killed"])
def test_each_change_by_each_api_is_audited_once_with_both_values(tmp_path: Path, interrupted: str) -> None:
    expected: list[tuple[str, Change]] = []
    with running(tmp_path) as world:
        for step in STEPS:
            step.before(world)
            request = step.request(world)
            world.do(request)
            expected += [(APIS[request.API_KEY].name, change) for change in step.changes(world)]
            if interrupted != "never":
                world.kafka.restart(kill=interrupted == "killed")
        until(lambda: audited_changes(world)[-1:] == expected[-1:])
        assert audited_changes(world) == expected
    assert {api.name for api in APIS.values() if api.audit is not None} - {
        api for api, _ in expected
    } == ALWAYS_REFUSED | AFTER_A_LOGIN


def test_every_api_is_classified_as_changing_or_reading() -> None:
    changing = {api.name for api in APIS.values() if api.audit is not None}
    reading = {each.name for each in APIS.values() if each.name.startswith(READING)} | ALSO_READING
    assert changing | reading | OF_CLIENTS == {each.name for each in APIS.values()}
    assert not changing & (reading | OF_CLIENTS)
