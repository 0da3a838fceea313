"""Compare two responses field by field, without the fields that must differ between two brokers."""

import re
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, crc_matches, iterate_headers
from barnabas.wire.records.record import decode_batch
from barnabas.wire.schema import Field, Message, Struct
from differential.identities import Identities
from differential.sides import Answer

#: Times this close to now are the broker's own; the tests send none such.
NEAR_MS = 600_000

#: Texts whose wording is up to the broker.
TEXTS = {"error_message", "batch_index_error_message", "documentation"}
TIMESTAMPS = {
    *["log_append_time_ms", "timestamp", "last_timestamp"],
    *["last_fetch_timestamp", "last_caught_up_timestamp", "transaction_start_time_ms"],
    *["issue_timestamp", "issue_timestamp_ms"],
}
#: Times at which a delegation token ends, days from now.
ENDS = {"expiry_timestamp", "expiry_timestamp_ms", "max_timestamp", "max_timestamp_ms"}
SIZES = {"total_bytes", "usable_bytes", "partition_size"}
TOPIC_NAMES = {"name", "topic", "topic_name", "resource_name", "group_id"}
MEMBER_IDS = {"member_id", "leader"}

#: Counts and names that are up to the broker.
OWN = {
    "ApiVersionsResponse.finalized_features_epoch",
    "DescribeQuorumResponse.topics.partitions.leader_epoch",
    "DescribeQuorumResponse.topics.partitions.high_watermark",
    "DescribeQuorumResponse.topics.partitions.current_voters.log_end_offset",
    "DescribeQuorumResponse.topics.partitions.current_voters.replica_directory_id",
}

#: Arrays that Kafka returns in no particular order -> the fields that identify their elements.
KEYED: dict[str, tuple[str, ...]] = {
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below": ("name",),
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below.results_by_partition": ("partition_index",),
    "AddPartitionsToTxnResponse.results_by_transaction": ("transactional_id",),
    "AddPartitionsToTxnResponse.results_by_transaction.topic_results": ("name",),
    "AddPartitionsToTxnResponse.results_by_transaction.topic_results.results_by_partition": (
        "partition_index",
    ),
    "AlterClientQuotasResponse.entries": ("entity",),
    "AlterClientQuotasResponse.entries.entity": ("entity_type",),
    "AlterConfigsResponse.responses": ("resource_type", "resource_name"),
    "AlterUserScramCredentialsResponse.results": ("user",),
    "ApiVersionsResponse.api_keys": ("api_key",),
    "ApiVersionsResponse.supported_features": ("name",),
    "ApiVersionsResponse.finalized_features": ("name",),
    "ConsumerGroupDescribeResponse.groups": ("group_id",),
    "ConsumerGroupDescribeResponse.groups.members.assignment.topic_partitions": ("topic_name",),
    "ConsumerGroupDescribeResponse.groups.members.target_assignment.topic_partitions": ("topic_name",),
    "ConsumerGroupHeartbeatResponse.assignment.topic_partitions": ("topic_id",),
    "CreateTopicsResponse.topics": ("name",),
    "CreateTopicsResponse.topics.configs": ("name",),
    "DeleteRecordsResponse.topics.partitions": ("partition_index",),
    "DeleteTopicsResponse.responses": ("name", "topic_id"),
    "CreatePartitionsResponse.results": ("name",),
    "DescribeClientQuotasResponse.entries": ("entity",),
    "DescribeClientQuotasResponse.entries.entity": ("entity_type",),
    "DescribeClientQuotasResponse.entries.values": ("key",),
    "DescribeConfigsResponse.results.configs": ("name",),
    "DescribeConfigsResponse.results": ("resource_type", "resource_name"),
    "DeleteGroupsResponse.results": ("group_id",),
    "DescribeDelegationTokenResponse.tokens": ("token_id",),
    "DescribeGroupsResponse.groups": ("group_id",),
    "DescribeGroupsResponse.groups.members": ("member_id",),
    "DescribeTransactionsResponse.transaction_states": ("transactional_id",),
    "DescribeTransactionsResponse.transaction_states.topics": ("topic",),
    "ListTransactionsResponse.transaction_states": ("transactional_id",),
    "DescribeUserScramCredentialsResponse.results": ("user",),
    "DescribeUserScramCredentialsResponse.results.credential_infos": ("mechanism",),
    "ElectLeadersResponse.replica_election_results.partition_result": ("partition_id",),
    "IncrementalAlterConfigsResponse.responses": ("resource_type", "resource_name"),
    "JoinGroupResponse.members": ("member_id",),
    "ListGroupsResponse.groups": ("group_id",),
    "ListConfigResourcesResponse.config_resources": ("resource_type", "resource_name"),
    "MetadataResponse.topics": ("name",),
    "AlterReplicaLogDirsResponse.results.partitions": ("partition_index",),
    "DescribeLogDirsResponse.results.topics": ("name",),
    "DescribeLogDirsResponse.results.topics.partitions": ("partition_index",),
    "DescribeProducersResponse.topics.partitions": ("partition_index",),
    "DescribeProducersResponse.topics.partitions.active_producers": ("producer_id",),
    "FetchResponse.responses.partitions": ("partition_index",),
    "ListOffsetsResponse.topics.partitions": ("partition_index",),
    "OffsetFetchResponse.topics": ("name",),
    "OffsetFetchResponse.topics.partitions": ("partition_index",),
    "OffsetFetchResponse.groups.topics": ("name", "topic_id"),
    "OffsetFetchResponse.groups.topics.partitions": ("partition_index",),
    "ProduceResponse.responses.partition_responses": ("index",),
    "WriteTxnMarkersResponse.markers": ("producer_id",),
    "WriteTxnMarkersResponse.markers.topics": ("name",),
    "WriteTxnMarkersResponse.markers.topics.partitions": ("partition_index",),
}
#: Arrays that only group: Kafka merges a topic that is named twice, and omits one without partitions.
GROUPS: dict[str, tuple[str, ...]] = {
    "OffsetCommitResponse.topics": ("name", "topic_id"),
    "AlterReplicaLogDirsResponse.results": ("topic_name",),
    "DeleteRecordsResponse.topics": ("name",),
    "ElectLeadersResponse.replica_election_results": ("topic",),
    "FetchResponse.responses": ("topic", "topic_id"),
    "ListOffsetsResponse.topics": ("name",),
    "ProduceResponse.responses": ("name", "topic_id"),
}
#: Arrays of plain values that Kafka returns in no particular order.
UNORDERED = {"ConsumerGroupDescribeResponse.groups.members.subscribed_topic_names"}


class Difference(NamedTuple):
    """One field in which the responses differ; `path` has no indexes, `at` has them."""

    api: str
    version: int
    path: str
    at: str
    kafka: Any
    barnabas: Any
    request: Message | None = None

    def __str__(self) -> str:
        return f"{self.api} v{self.version} {self.at}: Kafka {self.kafka!r}, Barnabas {self.barnabas!r}"


def compare(
    api: str,
    version: int,
    kafka: Answer,
    barnabas: Answer,
    kafka_names: Identities,
    barnabas_names: Identities,
) -> list[Difference]:
    """Return every field that differs."""
    if kafka.outcome != barnabas.outcome:
        return [Difference(api, version, "outcome", "outcome", _outcome(kafka), _outcome(barnabas))]
    if kafka.body is None or barnabas.body is None:
        return []
    left = flatten(kafka.body, version, kafka_names)
    right = flatten(barnabas.body, version, barnabas_names)
    return [
        Difference(api, version, without_indexes(at), at, left.get(at, MISSING), right.get(at, MISSING))
        for at in sorted(left.keys() | right.keys())
        if left.get(at, MISSING) != right.get(at, MISSING) and _is_in_both(at, left, right)
    ]


def _is_in_both(at: str, left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether the elements around a field are in both responses: a missing element is one difference as a whole."""
    around = [at[: match.end()] for match in re.finditer(r"\]", at)]
    return all((each in left) == (each in right) for each in around if each != at)


def _outcome(answer: Answer) -> str:
    if answer.body is None:
        return answer.outcome
    return f"{answer.outcome}: {brief(answer.body)}"


def brief(value: Any) -> str:
    """Format a message without fields that have their defaults."""
    if isinstance(value, list):
        return "[" + ", ".join(map(brief, value)) + "]"
    if not isinstance(value, Struct):
        return repr(value)
    plain_one = type(value)()
    fields = [
        f"{field.name}={brief(getattr(value, field.name))}"
        for field in value.FIELDS
        if getattr(value, field.name) != getattr(plain_one, field.name)
    ]
    return f"{type(value).__name__}({', '.join(fields)})"


class _Missing:
    def __repr__(self) -> str:
        return "(nothing)"


MISSING = _Missing()


def without_indexes(at: str) -> str:
    """ "topics[0].name" -> "topics.name"."""
    return "".join(part.partition("]")[2] if "]" in part else part for part in at.split("["))


def flatten(body: Message, version: int, names: Identities) -> dict[str, Any]:
    """Return each leaf of a message by its path, normalized."""
    leaves: dict[str, Any] = {}
    _flatten(body, version, names, "", type(body).__name__, leaves)
    return leaves


def _flatten(
    owner: Struct, version: int, names: Identities, at: str, path: str, leaves: dict[str, Any]
) -> None:
    for field in owner.FIELDS:
        if version not in field.versions:
            continue
        value = getattr(owner, field.name)
        here, field_path = f"{at}{field.name}", f"{path}.{field.name}"
        if field.is_array and isinstance(value, list):
            _flatten_array(field, value, version, names, here, field_path, leaves)
        else:
            _leaf(field, value, version, names, here, field_path, leaves)


def _flatten_array(
    field: Field,
    elements: list[Any],
    version: int,
    names: Identities,
    at: str,
    path: str,
    leaves: dict[str, Any],
) -> None:
    key = KEYED.get(path) or GROUPS.get(path)
    elements = sorted(elements) if path in UNORDERED else elements
    if key is None:
        leaves[f"{at}.count"] = len(elements)
    for index, each in enumerate(elements):
        label = str(index) if key is None else _label(each, key, names)
        if path not in GROUPS:
            while f"{at}[{label}]" in leaves:
                label = f"{label} again"
            leaves[f"{at}[{label}]"] = "given"
        elif _is_empty(each):
            continue
        _leaf(field, each, version, names, f"{at}[{label}]", path, leaves)


def _label(element: Struct, key: tuple[str, ...], names: Identities) -> str:
    parts = [plain(name, getattr(element, name), names) for name in key]
    if parts == [None]:  # a topic that only its id identifies
        parts = [plain("topic_id", element.__getattribute__("topic_id"), names)]
    return " ".join(map(str, parts))


def _is_empty(group: Struct) -> bool:
    return not any(getattr(group, field.name) for field in group.FIELDS if field.is_array)


def _leaf(
    field: Field, value: Any, version: int, names: Identities, at: str, path: str, leaves: dict[str, Any]
) -> None:
    if isinstance(value, Struct):
        _flatten(value, version, names, f"{at}.", path, leaves)
    elif field.kind == "records":
        leaves |= {f"{at}{key}": each for key, each in plain_records(bytes(value or b""), names).items()}
    elif path in OWN and value not in (-1, 0, ZERO_UUID):
        leaves[at] = "its own"
    else:
        leaves[at] = plain(field.name, value, names)


def plain(name: str, value: Any, names: Identities) -> Any:
    """Normalize a value, so that it is equal for both brokers."""
    if name in _PLAIN:
        return _PLAIN[name](value, names)
    if name in TEXTS:
        return "a text" if value else value
    if name in TIMESTAMPS:
        return near_now(value)
    if name in ENDS and value > 0:
        return f"in {round((value - time.time() * 1000) / NEAR_MS)} times {NEAR_MS} ms"
    if name in TOPIC_NAMES:
        return names.plain_name(value)
    if name in MEMBER_IDS and isinstance(value, str):
        return names.plain_member_id(value)
    if name in SIZES and value > 0:
        return "some bytes"
    if name in ("port", "cluster_id", "throttle_time_ms") and value not in (None, -1):
        return f"some {name}"
    return value


def _plain_entity(entity: list[Any], names: Identities) -> str:
    """Name an entity of a quota, whose parts are unordered."""
    return " and ".join(sorted(f"{part.entity_type} {part.entity_name!r}" for part in entity))


#: Fields that mean the same in every response -> how to normalize their values.
_PLAIN: dict[str, Callable[[Any, Identities], Any]] = {
    "entity": _plain_entity,
    "topic_id": lambda value, names: names.plain_topic_id(value),
    "producer_id": lambda value, names: names.plain_producer_id(value),
    "session_id": lambda value, names: names.plain_session_id(value),
    "log_dir": lambda value, names: names.plain_log_dir(value),
    "token_id": lambda value, names: names.plain_token_id(value),
    "hmac": lambda value, names: "a password" if value else value,
    "error_code": lambda value, names: ErrorCode(value).name,
}


def near_now(timestamp_ms: int) -> int | str:
    """Normalize times that the broker has set."""
    return "now" if abs(timestamp_ms - int(time.time() * 1000)) < NEAR_MS else timestamp_ms


def plain_records(data: bytes, names: Identities) -> dict[str, Any]:
    """Summarize a fetched slice: its complete batches and the size of the rest."""
    leaves: dict[str, Any] = {"": len(data) if not data else "some bytes"}
    position = 0
    try:
        for number, (position, header) in enumerate(iterate_headers(data)):
            at = f"[{number}]"
            for name, value in header._asdict().items():
                leaves[f"{at}.{name}"] = _plain_header_field(name, value, names)
            leaves[f"{at}.crc"] = crc_matches(data, position, header)
            if header.compression:  # different compressors of one format produce different bytes
                del leaves[f"{at}.batch_length"]
            leaves[f"{at}.records"] = [
                (record.offset, near_now(record.timestamp_ms), *record[2:])
                for record in decode_batch(data, position, header)
            ]
            position += header.size_bytes
    except (KafkaError, struct.error, IndexError) as error:
        leaves["unreadable"] = type(error).__name__
    leaves["behind"] = len(data) - position if len(data) - position < BATCH_HEADER_BYTES else "a header"
    return leaves


def _plain_header_field(name: str, value: int, names: Identities) -> Any:
    if name in ("base_timestamp", "max_timestamp"):
        return near_now(value)
    return names.plain_producer_id(value) if name == "producer_id" else value
