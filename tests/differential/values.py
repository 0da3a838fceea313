"""Values of the fields of requests: valid, invalid and boundary values for each field, drawn by hypothesis."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from barnabas.api.registry import ApiSpec
from barnabas.base.ids import ZERO_UUID
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.add_raft_voter import Listener
from barnabas.wire.messages.alter_client_quotas import OpData
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_quorum import PartitionData, TopicData
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.messages.write_txn_markers import WritableTxnMarker, WriteTxnMarkersRequest
from barnabas.wire.records.compression import Compression
from barnabas.wire.schema import Field, Message, Struct
from differential.batches import FLAWS, HOUR_MS, TAKEN, UNREADABLE, Batch
from differential.config_values import alterations
from differential.identities import UNKNOWN_TOPIC_ID
from differential.symbols import LogDir, Name, Now, Producer, Session, SessionEpoch, TopicId

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
INT32_MIN, INT64_MIN = -(2**31), -(2**63)

#: The topics of a world; the first ones exist from the start.
NAMES = ("a", "b", "stamped", "compacted", "c.d", "c_d", "new")
INVALID_NAMES = ("", ".", "..", "no spaces", "é", "x" * 250)
TOPIC_NAMES = [Name(name) for name in NAMES for _ in range(3)] + [Name("missing"), *INVALID_NAMES]
TOPIC_IDS = [TopicId(name) for name in NAMES] + [TopicId("a", 0), UNKNOWN_TOPIC_ID, ZERO_UUID]
PARTITIONS = [0, 0, 0, 0, 1, 1, 2, -1, 5, INT32_MAX]
OFFSETS = [0, 0, 1, 2, 3, 4, 5, 7, 10, -1, -2, INT64_MAX, INT64_MIN]
EPOCHS = [-1, -1, -1, 0, 0, 1, -2, INT32_MAX]
TIMES = [-1, -2, -3, -4, -5, -6, -7, 0, 999, 1000, 1001, 2000, 5000, INT64_MAX, Now(2 * HOUR_MS)]
REPLICAS = [-1, -1, -1, -1, -2]
LIMITS_BYTES = [
    1 << 20,
    1 << 20,
    1 << 20,
    0,
    1,
    60,
    100,
    200,
    INT32_MAX,
]  # negative ones are a listed difference

ACL_RESOURCES = [2, 2, 2, 3, 4, 5, 6, 7, 1, 0, 127, -1]
ACL_NAMES = [*TOPIC_NAMES, "*", "kafka-cluster", None]
ACL_PATTERNS = [3, 3, 4, 2, 1, 0, -1]
SCRAM_MECHANISMS = [1, 1, 2, 2, 0, 3, -1]

#: Groups shared by all worlds; none ever has a member.
GROUP_IDS = ["group", "group", "other", ""]

#: Transactional ids that never exist; existing ones have tests of their own.
TRANSACTIONAL_IDS = ["nobody", "nobody", "noone", ""]

#: Field name -> its values, in every message without an exception below.
POOLS: dict[str, Sequence[Any]] = {
    "name": TOPIC_NAMES,
    "topic": TOPIC_NAMES,
    "topic_name": TOPIC_NAMES,
    "topic_names": TOPIC_NAMES,
    "path": [*[LogDir("data")] * 3, LogDir("more"), LogDir("data/"), LogDir("none"), "", "data"],
    "topic_id": TOPIC_IDS,
    "partition": PARTITIONS,
    "partitions": PARTITIONS,
    "index": PARTITIONS,
    "partition_index": PARTITIONS,
    "partition_indexes": PARTITIONS,
    "offset": OFFSETS,
    "fetch_offset": OFFSETS,
    "timestamp": TIMES,
    "current_leader_epoch": EPOCHS,
    "leader_epoch": EPOCHS,
    "last_fetched_epoch": EPOCHS,
    "replica_id": REPLICAS,
    "replica_epoch": [-1],
    "replica_directory_id": [ZERO_UUID],
    "high_watermark": [INT64_MAX, 0, 3],
    "log_start_offset": [-1, 0, 5],
    "isolation_level": [0, 1],
    "cluster_id": [None, "another"],
    "rack_id": ["", "a-rack"],
    "session_id": [0],  # set together with its epoch, below
    "session_epoch": [-1],
    "max_wait_ms": [0, 0, 1, 20, -1],
    "min_bytes": [0, 1, 1, 50, -1],
    "max_bytes": LIMITS_BYTES,
    "partition_max_bytes": LIMITS_BYTES,
    "acks": [-1, -1, -1, 1, 1, 0, 2, -2],
    "timeout_ms": [10_000],
    "transactional_id": [None, None, None, None, "", "tx"],
    "transactional_ids": TRANSACTIONAL_IDS,
    "v3_and_below_transactional_id": TRANSACTIONAL_IDS,
    "v3_and_below_producer_id": [0, 5, -1],
    "v3_and_below_producer_epoch": [0, 1, -1, 32_767],
    "duration_filter": [-1, 0, 1000, INT64_MAX],
    "client_software_name": ["client", "", "bad name", "-a", "a-", "a.b-c"],
    "client_software_version": ["1.0", "", "1.0 beta", "x" * 300],
    "num_partitions": [-1, 1, 1, 2, 3, 0, -2, 10_001],
    "replication_factor": [-1, -1, 1, 1, 1, 0, -2, 2, 32_767],
    "broker_ids": [1, 1, 1, 1, 0, -1, 2],
    "count": [1, 2, 3, 4, 0, -1],
    "resource_type": [2, 2, 2, 4, 4, 0, 1, 3, 8, 16, 32, 127, -1],
    "resource_name": [*TOPIC_NAMES, "1", "1", "2", "-1", "", "one"],
    "configuration_keys": ["retention.ms", "cleanup.policy", "num.partitions", "no.such.key", ""],
    "key": ["group", ""],
    "group_id": GROUP_IDS,
    "groups": GROUP_IDS,
    "groups_names": GROUP_IDS,
    "member_id": ["", "nobody"],
    "group_instance_id": [None, None, "one", ""],
    "generation_id": [-1, 0, 1, INT32_MAX],
    "generation_id_or_member_epoch": [-1, -1, 0, 1, INT32_MAX],
    "committed_offset": [0, 5, 5, 100, -1, INT64_MAX],
    "committed_leader_epoch": EPOCHS,
    "committed_metadata": ["", "note", None, "x" * 4096, "x" * 4097],
    "commit_timestamp": [-1],
    "retention_time_ms": [-1, -1, 0, 60_000],
    "session_timeout_ms": [10_000, 10_000, 6_000, 5_999, 1_800_000, 1_800_001, 0, -1],
    "rebalance_timeout_ms": [60_000, 0, -1],
    "protocol_type": ["consumer", "consumer", "connect", "", None],
    "protocol_name": ["range", "", None],
    "metadata": [b"", b"text"],
    "assignment": [b"", b"work"],
    "reason": [None, "", "because"],
    "states_filter": ["Stable", "empty", " Dead ", "nope", ""],
    "types_filter": ["classic", "Consumer", "nope", ""],
    "group_ids": GROUP_IDS,
    "member_epoch": [0, 0, 1, -1, -2, -3, INT32_MAX],
    "instance_id": [None, None, "one", ""],
    "subscribed_topic_names": TOPIC_NAMES,
    "subscribed_topic_regex": ["", "a.*", "("],
    "server_assignor": ["range", "uniform", "sticky", ""],
    "coordinator_keys": ["group", ""],
    "key_type": [0, 1, 2, 3, -1, 127],
    "endpoint_type": [1, 1, 2, 0, 3, -1],
    "response_partition_limit": [1, 2, 3, 1000, 0, -1, INT32_MAX],
    "transaction_timeout_ms": [60_000, 0, -1, INT32_MAX],
    "producer_id": [-1, -1, -1, Producer(0), 5, -2],
    "entity_type": ["user", "user", "client-id", "client-id", "ip", "", "group"],
    "entity_name": [None, "q-one", "q-two", "", "10.9.8.7", "fe80::9", "256.1.1.1"],
    "match_type": [0, 0, 1, 2, 2, 3, -1],
    "match": [None, None, "q-one", "q-two", "10.9.8.7", ""],
    "resource_types": [2, 4, 8, 16, 32, 0, 1, 77],
    "coordinator_epoch": [0, 0, 1, -1, INT32_MAX],
    "transaction_version": [0, 0, 1, 2, 3],
    "producer_epoch": [-1, -1, -1, 0, 1, -2, 32_767],
    "feature": ["metadata.version", "metadata.version", "nope", ""],  # the others are a listed difference
    "max_version_level": [30, 30, 31, 29, 7, 6, 0, -1],
    "upgrade_type": [1, 2, 3, 0, 4, -1],
    "broker_id": [2, 5, -1, INT32_MAX],  # Kafka would unregister itself
    "voter_id": [1, 1, 2, -1],
    "voter_directory_id": [UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_ID, ZERO_UUID],
    "resource_type_filter": ACL_RESOURCES,
    "resource_name_filter": ACL_NAMES,
    "resource_pattern_type": ACL_PATTERNS,
    "pattern_type_filter": ACL_PATTERNS,
    "principal_type": ["User", "User", "Group", ""],
    "principal_name": ["one", "ANONYMOUS", ""],
    "owner_principal_type": ["User", "User", "Group", ""],  # null is an unexpected exception in Kafka
    "owner_principal_name": ["one", "", None],
    "max_lifetime_ms": [-1, 0, 1, 1000, INT64_MAX, INT64_MIN],
    "hmac": [b"", b"unknown"],
    "renew_period_ms": [-1, 0, 1000, INT64_MAX],
    "expiry_time_period_ms": [-1, 0, 1000, INT64_MAX],
    "principal": ["User:one", "User:*", "User:", "one", ""],
    "principal_filter": ["User:one", "User:*", "", None],
    "host": ["*", "10.0.0.1", ""],
    "host_filter": ["*", "10.0.0.1", "", None],
    "operation": [*range(-1, 18), 127],
    "permission_type": [3, 3, 2, 1, 0, 4, -1],
    "election_type": [0, 0, 1, 2, -1],
    "replicas": [1, 1, 1, 0, -1, 2],
    "mechanism": ["PLAIN", "SCRAM-SHA-256", ""],
    "auth_bytes": [b"", b"\0user\0secret"],
}

#: Fields that have another meaning in one struct than in the others.
OWN_POOLS: dict[type[Struct], dict[str, Sequence[Any]]] = {
    AddPartitionsToTxnTransaction: {"transactional_id": TRANSACTIONAL_IDS},
    ListTransactionsRequest: {
        "state_filters": [["Open"], ["ongoing", "Dead"], ["Dead", "PrepareEpochFence", "Open"]],
        "producer_id_filters": [[], [5], [-1, INT64_MAX]],
        "transactional_id_pattern": [None, "", "no.*", "(", "(?=a)"],
    },
    TxnOffsetCommitRequest: {"transactional_id": TRANSACTIONAL_IDS},
    WritableTxnMarker: {"producer_id": [Producer(0), Producer(1), 5], "producer_epoch": [0, 0, 1, 32_767]},
    JoinGroupRequestProtocol: {"name": ["range", "sticky", ""]},
    ScramCredentialDeletion: {"mechanism": SCRAM_MECHANISMS},
    ScramCredentialUpsertion: {
        "mechanism": SCRAM_MECHANISMS,
        "iterations": [4096, 4096, 8192, 16_384, 16_385, 4095, 0, -1],
        "salt": [b"salt", b"salt", b""],
        "salted_password": [b"x" * 32, b"x" * 64, b"x"],
    },
}

CONFIGS = [
    ("retention.ms", "1000"), ("retention.ms", "-2"), ("retention.ms", None), ("retention.ms", "soon"),
    ("cleanup.policy", "compact"), ("cleanup.policy", "compact,delete"), ("cleanup.policy", "shred"),
    ("cleanup.policy", ""), ("compression.type", "gzip"), ("compression.type", "uncompressed"),
    ("compression.type", "brotli"), ("max.message.bytes", "150"), ("max.message.bytes", "-1"),
    ("message.timestamp.type", "LogAppendTime"), ("message.timestamp.type", "logappendtime"),
    ("message.timestamp.before.max.ms", "3600000"), ("segment.bytes", "10"), ("segment.bytes", "1048576"),
    ("min.insync.replicas", "2"), ("min.insync.replicas", "0"), ("no.such.key", "1"), ("", ""),
    ("unclean.leader.election.enable", "maybe"), ("follower.replication.throttled.replicas", "0:1,1:1"),
    ("follower.replication.throttled.replicas", "x"), ("index.interval.bytes", " 100 "),
    ("preallocate", "TRUE"), ("retention.bytes", "1.5"), ("delete.retention.ms", "9223372036854775808"),
    ("remote.storage.enable", "true"), ("local.retention.ms", "-3"), ("flush.messages", "0"),
]  # fmt: skip

#: Names and partitions that include the cluster's metadata topic.
METADATA_LOGS = (
    ["__cluster_metadata", "__cluster_metadata", "missing", ""],
    [[PartitionData(0)], [PartitionData(0), PartitionData(1)], [PartitionData(1)], []],
)

#: Quotas so large that the tests do not exceed them.
QUOTAS = [
    ("producer_byte_rate", 1e9), ("producer_byte_rate", 2e9), ("producer_byte_rate", 1e9 + 0.5),
    ("producer_byte_rate", 0.0), ("producer_byte_rate", 1e19), ("producer_byte_rate", 9.223372036854775807e18),
    ("consumer_byte_rate", 1e9), ("consumer_byte_rate", -1.0), ("consumer_byte_rate", float("inf")),
    ("request_percentage", 1e9), ("request_percentage", 1e9 + 0.5), ("request_percentage", 0.0),
    ("request_percentage", float("inf")), ("controller_mutation_rate", 1e9), ("controller_mutation_rate", -0.5),
    ("connection_creation_rate", 1e9), ("connection_creation_rate", 2.5), ("connection_creation_rate", 3e9),
    ("connection_creation_rate", 0.0), ("no_such_rate", 1.0), ("", 1.0), ("SCRAM-SHA-256", 1.0),
]  # fmt: skip

STAMPS = [
    1000,
    1000,
    1001,
    2000,
    5000,
    999,
    0,
    -1,
    -5,
    Now(-2 * HOUR_MS),
    Now(2 * HOUR_MS),
    INT64_MAX - 10,
]  # offsets relative to these are valid, too


def batches() -> SearchStrategy[Batch]:
    """Generate mostly valid batches, half of them idempotent."""
    keys = st.sampled_from([b"k", b"", None])
    values = st.sampled_from([b"v", b"", None, b"x" * 100])
    records = st.lists(st.tuples(st.sampled_from(STAMPS), keys, values), min_size=1, max_size=3).map(tuple)
    flaws = st.one_of(st.none(), st.none(), st.none(), st.sampled_from(sorted(FLAWS.keys() - TAKEN)))
    return st.builds(
        Batch,
        records=records,
        compression=st.sampled_from([Compression.NONE, Compression.NONE, *Compression]),
        producer=st.sampled_from([None, None, 0, 0, 1, 9]),
        epoch=st.sampled_from([0, 0, 0, 0, 1, 1, 2, -1]),
        sequence=st.sampled_from([0, 0, 0, 0, -1, -2, -3, 1, 5, -10, INT32_MAX]),
        flaw=flaws,
    )


@cache
def messages(spec: ApiSpec, version: int) -> SearchStrategy[Message]:
    """Generate requests of one API and version."""
    if spec.request in (AlterConfigsRequest, IncrementalAlterConfigsRequest):
        return alterations(spec.request)
    built: SearchStrategy[Message] = structs(spec.request, version)
    if spec.request is FetchRequest and version >= 7:
        return st.builds(_in_session, built, st.sampled_from(SESSIONS))
    if spec.request is ProduceRequest:
        return built.map(_without_twins)
    if spec.request is WriteTxnMarkersRequest:
        return built.map(_without_twin_ends)
    if spec.request is AddPartitionsToTxnRequest and version >= 4:
        return built.filter(_has_transactions)
    if spec.request is JoinGroupRequest:
        return built.map(lambda request: _without_waiting(request, version))
    if spec.request is ConsumerGroupHeartbeatRequest:
        return built.map(_without_subscription)
    if spec.request is DescribeTopicPartitionsRequest:
        return built.filter(_names_topics)
    if spec.request is DescribeLogDirsRequest:
        return built.filter(lambda request: request.topics is not None)  # type: ignore[attr-defined]
    if spec.request in (CreateTopicsRequest, MetadataRequest):
        return built.map(_without_collision)
    return built


#: Session id and epoch belong together; most fetches are full ones.
SESSIONS: list[tuple[Any, Any]] = [
    (0, -1), (0, -1), (0, -1), (0, 0), (0, 0), (Session(), SessionEpoch()), (Session(), SessionEpoch()),
    (Session(1), SessionEpoch(1)), (Session(), SessionEpoch(0, 1)), (Session(), SessionEpoch(0, -1)),
    (Session(), 0), (Session(), -1), (0, 1), (5, 1), (-1, 0), (Session(), INT32_MAX), (Session(), -2),
]  # fmt: skip


def _in_session(request: FetchRequest, session: tuple[Any, Any]) -> FetchRequest:
    request.session_id, request.session_epoch = session
    if request.topics and not request.topics[0].topic:  # by id; the zero id is a listed difference
        request.topics = [topic for topic in request.topics if topic.topic_id != ZERO_UUID]
    return request


def _without_collision(request: Message) -> Message:
    """Remove the second of two names that collide, which is a listed difference."""
    topics = getattr(request, "topics", None) or []
    names = {repr(topic.name) for topic in topics}
    if repr(Name("c.d")) in names:
        topics[:] = [topic for topic in topics if topic.name != Name("c_d")]
    return request


def _without_waiting(request: Message, version: int) -> Message:
    """Remove the protocols from a request that would create a member, for which later requests would wait."""
    assert isinstance(request, JoinGroupRequest)
    if version < 4 or request.group_instance_id is not None:
        request.protocols = []
    return request


def _without_subscription(request: Message) -> Message:
    """Remove the subscription from a request that would create a member."""
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    if request.member_epoch == 0:
        request.subscribed_topic_names = request.subscribed_topic_regex = None
    return request


def _names_topics(request: Message) -> bool:
    """Whether the request names topics: all topics at once would count Kafka's internal ones; "" is a listed
    difference.
    """
    assert isinstance(request, DescribeTopicPartitionsRequest)
    return bool(request.topics) and all(topic.name for topic in request.topics)


def _has_transactions(request: Message) -> bool:
    """Whether the request has transactions: Kafka does not respond without any, and merges duplicate ids."""
    assert isinstance(request, AddPartitionsToTxnRequest)
    ids = [transaction.transactional_id for transaction in request.transactions]
    return bool(ids) and len(ids) == len(set(ids))


def _without_twin_ends(request: Message) -> Message:
    """Remove duplicate partitions in a marker, which are a listed difference."""
    assert isinstance(request, WriteTxnMarkersRequest)
    for marker in request.markers:
        marker.topics = list({repr(topic.name): topic for topic in marker.topics}.values())
        for topic in marker.topics:
            topic.partition_indexes = list(dict.fromkeys(topic.partition_indexes))
    return request


def _without_twins(request: Message) -> Message:
    """Remove duplicate partitions, which are a listed difference.

    A batch that Kafka cannot parse is sent alone, because Kafka would fail its neighbours, too.
    """
    assert isinstance(request, ProduceRequest)
    seen = set()
    for topic in request.topic_data:
        for data in list(topic.partition_data):
            twin = (repr(topic.name), repr(topic.topic_id), data.index)
            if twin in seen:
                topic.partition_data.remove(data)
            seen.add(twin)
            flaw = getattr(data.records, "flaw", None)
            if flaw in UNREADABLE:
                topic.partition_data = [data]
                request.topic_data = [topic]
                return request
    return request


def structs(owner: type[Struct], version: int) -> SearchStrategy[Any]:
    """Generate instances of a struct with the fields of a version."""
    if owner is CreatableTopicConfig:
        return st.sampled_from(CONFIGS).map(lambda pair: CreatableTopicConfig(*pair))
    if owner is Listener:
        return st.just(Listener("CONTROLLER", "127.0.0.1", 9))  # a host that does not resolve stops Kafka
    if owner is TopicData:
        right = st.just(TopicData("__cluster_metadata", [PartitionData(0)]))
        return st.one_of(right, st.builds(TopicData, *map(st.sampled_from, METADATA_LOGS)))
    if owner is OpData:
        pairs = st.sampled_from(QUOTAS)
        return st.builds(lambda pair, remove: OpData(*pair, remove), pairs, st.booleans())  # type: ignore[call-arg]
    own = OWN_POOLS.get(owner, {})
    fields = {
        field.name: st.sampled_from(own[field.name]) if field.name in own else values(field, version)
        for field in owner.FIELDS
        if version in field.versions
    }
    if owner is CreatableTopic:
        rarely: SearchStrategy[Any] = st.booleans().flatmap(
            lambda given: fields["assignments"] if given else st.just([])
        )
        fields["assignments"] = st.one_of(st.just([]), rarely)
    return st.builds(owner, **fields)


def values(field: Field, version: int) -> SearchStrategy[Any]:
    """Generate values of one field."""
    single: SearchStrategy[Any]
    if field.struct is not None:
        single = structs(field.struct, version)
    elif field.kind == "records":
        single = batches()
    elif field.kind == "bool":
        single = st.booleans()
    else:
        single = st.sampled_from(POOLS[field.name])
    drawn = st.lists(single, max_size=3) if field.is_array else single
    if version not in field.nullable or field.kind == "records":  # null records are a listed difference
        return drawn.map(_without_none(field))
    return st.one_of(st.none(), drawn, drawn, drawn)


def _without_none(field: Field) -> Callable[[Any], Any]:
    def fill(value: Any) -> Any:
        return "" if value is None and field.kind == "string" else value

    return fill
