"""The intended differences: the only ones that the tests accept, each with its reason.

The table in docs/differences.md is generated from this one: `python -m differential.listed` (in tests/) writes it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.describe_topic_partitions import Cursor as DescribedFrom
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import ProduceRequest
from differential.batches import TAKEN, UNREADABLE, Batch
from differential.compare import MISSING, Difference
from differential.listed_configs import LISTED_CONFIGS
from differential.listed_control import LISTED_CONTROL
from differential.listed_entry import ANYWHERE, EXCEPTION, MORE, Listed, is_at
from differential.listed_quotas import LISTED_QUOTAS
from differential.sequences import Step, beginning, create, produce, topic
from differential.symbols import Name
from differential.transactions import delete, end, find

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
BEGIN, END = "<!-- the table is generated -->\n", "<!-- end of the generated table -->\n"


def _is_missing(difference: Difference) -> bool:
    return difference.barnabas is MISSING


def _meets_exception(difference: Difference) -> bool:
    return (difference.kafka, difference.barnabas) == ("UNKNOWN_SERVER_ERROR", "INVALID_REQUEST")


def _has_text(difference: Difference) -> bool:
    return difference.kafka in (None, "") and difference.barnabas == "a text"


def _list_offsets(**fields: Any) -> tuple[Step, ...]:
    symbol: Any = Name("a")
    topics = [ListOffsetsTopic(symbol, [ListOffsetsPartition(0)])]
    return (beginning()[0], (ListOffsetsRequest(replica_id=-1, topics=topics, **fields), 2))


def _create_partitions(count: int) -> tuple[Step, ...]:
    symbol: Any = Name("a")
    return (
        beginning()[0],
        (CreatePartitionsRequest([CreatePartitionsTopic(symbol, count, None)], 10_000), 3),
    )


def _describe(resource_type: int, name: str) -> tuple[Step, ...]:
    request = DescribeConfigsRequest([DescribeConfigsResource(resource_type, name)], include_synonyms=True)
    return ((request, 4),)


#: Keys whose value is up to the broker.
_OWN = (
    "[advertised.listeners]", "[controller.", "[listener.security.protocol.map]", "[listeners]", "[log.dir",
    "[process.roles]", "[metadata.log.dir]", "[cordoned.log.dirs]",
)  # fmt: skip
_A: Any = Name("a")
_NULL: Any = None


def _has_flaw(*names: str) -> Callable[[Difference], bool]:
    return lambda difference: any(f"flaw={name!r}" in repr(difference.request) for name in names)


_NO_TOPIC_TWICE = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(0), FetchPartition(1)])])


def _names_no_topic(difference: Difference) -> bool:
    topics = getattr(difference.request, "topics", None) or []
    return any(topic.topic_id == ZERO_UUID for topic in topics if not topic.topic)


def _with_acks(acks: int, step: Step) -> ProduceRequest:
    request = step[0]
    assert isinstance(request, ProduceRequest)
    request.acks = acks
    return request


def _together(*steps: Step) -> Step:
    """Build one Produce request from several."""
    requests = [request for request, _ in steps if isinstance(request, ProduceRequest)]
    data = [topic for request in requests for topic in request.topic_data]
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data), 9


def _partitions(difference: Difference) -> list[tuple[str, int]]:
    topics = getattr(difference.request, "topic_data", [])
    return [(repr(topic.name), data.index) for topic in topics for data in topic.partition_data]


_NOT_THERE = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")


def _fails_neighbours(difference: Difference) -> bool:
    beside = len(_partitions(difference)) > 1 or difference.barnabas in _NOT_THERE
    return beside and _has_flaw(*UNREADABLE)(difference)


def _names_twice(difference: Difference) -> bool:
    named = _partitions(difference)
    return len(set(named)) < len(named)


def _fetch(version: int, **fields: Any) -> tuple[Step, ...]:
    symbol: Any = Name("a")
    topics = [FetchTopic(symbol, partitions=[FetchPartition(0, partition_max_bytes=-1)])]
    return (*beginning(), (FetchRequest(topics=topics, **fields), version))


#: Kafka sets this key for the whole cluster when it enables KIP-966.
_MIN_ISR = "[min.insync.replicas]"
_CREATE = create(topic("listed"))
_ELR = (
    "Kafka 4.3 writes `min.insync.replicas` as a cluster-wide dynamic default when it enables eligible leader "
    "replicas (KIP-966); in Barnabas the setting of each broker counts without one."
)
_API_VERSIONS = ((ApiVersionsRequest("differential", "1"), 4),)

#: A segment of one record, which DeleteRecords empties, and one from today.
_EMPTIED = (
    create(topic("emptied", segment_ms="1")),
    *produce("emptied", Batch(((1000, b"k", b"v"),))),
    delete(("emptied", 0), -1),
    *produce("emptied", Batch(((2000, b"k", b"v"),))),
    find(("emptied", 0), 1000),
)

_G: Any = Name("g")
_TWICE = (
    "Kafka returns a result for each occurrence: ten thousand occurrences of one name would be a response of "
    "hundreds of megabytes."
)


def _answered_again(difference: Difference) -> bool:
    return _is_missing(difference) and " again" in difference.at


def _describes_twice(difference: Difference) -> bool:
    topics = getattr(difference.request, "topics", [])
    named = [(repr(topic.name), index) for topic in topics for index in topic.partition_indexes]
    return _is_missing(difference) and len(set(named)) < len(named)


def _named_twice(api: str, path: str, *example: Step) -> Listed:
    return Listed(
        api, path, "a name that occurs more than once in a request", _TWICE, _answered_again, example
    )


LISTED = (
    _named_twice("DescribeGroups", "groups", (DescribeGroupsRequest(groups=[_G, _G]), 5)),
    _named_twice("ConsumerGroupDescribe", "groups", (ConsumerGroupDescribeRequest(group_ids=[_G, _G]), 0)),
    _named_twice(
        "DescribeTransactions", "transaction_states", (DescribeTransactionsRequest(transactional_ids=["x", "x"]), 0)
    ),
    _named_twice(
        "DescribeConfigs",
        "results",
        (DescribeConfigsRequest([DescribeConfigsResource(4, "1"), DescribeConfigsResource(4, "1")]), 4),
    ),
    Listed(
        "DescribeProducers", "topics.partitions", "a partition that occurs more than once in a request",
        "Kafka returns all its producers for each occurrence: the response may be thousands of times as large.",
        _describes_twice,
        (beginning()[0], (DescribeProducersRequest([TopicRequest(_A, [0, 0])]), 0)),
    ),
    *LISTED_CONFIGS,
    *LISTED_CONTROL,
    *LISTED_QUOTAS,
    Listed(
        "Metadata", ANYWHERE, "a topic with neither name nor id", EXCEPTION,
        lambda each: "name=None" in repr(each.request), ((MetadataRequest([MetadataRequestTopic(name=_NULL)]), 12),),
    ),
    Listed(
        "ApiVersions", "api_keys", "an API that Barnabas does not serve",
        "Barnabas advertises only the APIs that it serves.", _is_missing, _API_VERSIONS,
    ),
    Listed(
        "ApiVersions", "api_keys.min_version",
        "early versions of OffsetCommit, OffsetFetch, WriteTxnMarkers, and of the APIs for ACLs, delegation tokens, "
        "configs and log directories",
        "Kafka 4 has removed them; Barnabas also serves older clients.",
        is_at(*(f"api_keys[{key}]" for key in (8, 9, 27, 29, 30, 31, 32, 34, 35, 38, 39, 40, 41))), _API_VERSIONS,
    ),
    Listed(
        "ApiVersions", "api_keys.max_version", "InitProducerId: Kafka 5, Barnabas 6",
        "In Kafka 4.3 version 6 (KIP-939) must be enabled with `unstable.api.versions.enable`; Barnabas serves it.",
        is_at("api_keys[22]"), _API_VERSIONS,
    ),
    Listed("CreateTopics", "topics.configs", "`min.insync.replicas`", _ELR, is_at(_MIN_ISR), (_CREATE,)),
    Listed(
        "CreateTopics", "topics", "two names in one request of which one has `.` where the other has `_`",
        "Kafka compares new names only with existing topics, and creates both.",
        lambda each: "c_d" in each.at, (create(topic("c.d"), topic("c_d")),),
    ),
    Listed("DescribeConfigs", "results.configs", "`min.insync.replicas`", _ELR, is_at(_MIN_ISR), _describe(4, "1")),
    Listed(
        "CreateTopics", "topics.configs.value", "a value with spaces around it, or TRUE for true",
        "Kafka returns the string of the request here and the parsed value in DescribeConfigs; Barnabas returns "
        "the parsed value in both.",
        lambda each: str(each.kafka).strip().lower() == each.barnabas,
        (create(topic("spaced", index_interval_bytes=" 100 ")),),
    ),
    Listed(
        "DescribeConfigs", "results.configs", "`barnabas.*`", "Barnabas has its own keys.",
        is_at("[barnabas."), _describe(4, "1"),
    ),
    Listed(
        "DescribeConfigs", "results.configs", "addresses, directories, and keys that only KRaft nodes have",
        "Each broker has its own addresses and directories; Barnabas has no controller listener.",
        is_at(*_OWN), _describe(4, "1"),
    ),
    Listed(
        "DescribeConfigs", "results.error_message", "UNKNOWN_TOPIC_OR_PARTITION", MORE, _has_text,
        _describe(2, "missing"),
    ),
    Listed(
        "DescribeProducers", "topics.partitions.error_message",
        "a partition that the topic does not have", MORE, _has_text,
        (beginning()[0], (DescribeProducersRequest([TopicRequest(_A, [9])]), 0)),
    ),
    Listed(
        "DescribeTopicPartitions", ANYWHERE, "an empty topic name",
        "Kafka fails with an unexpected exception; Barnabas returns INVALID_TOPIC_EXCEPTION.",
        lambda each: "TopicRequest(name='')" in repr(each.request),
        ((DescribeTopicPartitionsRequest([DescribedTopic("")], 9), 0),),
    ),
    Listed(
        "DescribeTopicPartitions", ANYWHERE, "a cursor at the highest possible partition index",
        "Kafka adds 1 to it and continues at a negative number; Barnabas continues with the next topic.",
        lambda each: "partition_index=2147483647" in repr(each.request),
        (
            beginning()[0],
            (DescribeTopicPartitionsRequest([DescribedTopic(_A)], 9, DescribedFrom(_A, 2**31 - 1)), 0),
        ),
    ),
    Listed(
        "Produce", "responses.partition_responses",
        "wrong offset deltas of uncompressed records, wrong lengths of compressed ones, numbers of more than 32 "
        "bits, bytes after the end of gzip or LZ4 data, several consecutive Snappy streams",
        "Kafka appends them, although not every consumer can read them; Barnabas returns INVALID_RECORD.",
        _has_flaw(*TAKEN), (beginning()[0], *produce("a", Batch(flaw="offset delta 5"))),
    ),
    Listed(
        "Produce", "responses.partition_responses.error_code",
        "an unknown compression codec, records that cannot be decompressed", EXCEPTION,
        lambda each: (each.kafka, each.barnabas) == ("UNKNOWN_SERVER_ERROR", "INVALID_RECORD"),
        (beginning()[0], *produce("a", Batch(flaw="codec 5"))),
    ),
    Listed(
        "Produce", "responses.partition_responses.log_start_offset", "records that are not exactly one batch",
        "Barnabas returns the log start offset with every INVALID_RECORD.", lambda each: each.kafka == -1,
        (beginning()[0], *produce("a", Batch(flaw="two batches"))),
    ),
    Listed(
        "Produce", "responses.partition_responses",
        "a batch with an unreadable header or an unknown codec, together with other batches or for an unknown "
        "partition",
        "Kafka fails the whole request first; in Barnabas an error of one partition does not affect others.",
        _fails_neighbours, (beginning()[0], _together(*produce("a", Batch(flaw="magic 3")), *produce("b", Batch()))),
    ),
    Listed(
        "Produce", "responses.partition_responses", "a partition that occurs twice in one request",
        "Kafka appends the last batch; Barnabas appends both and returns both results.",
        _names_twice, (beginning()[0], _together(*produce("a", Batch(), Batch()))),
    ),
    Listed(
        "Produce", "outcome", "null for records",
        "Kafka fails with an exception and never responds; Barnabas returns INVALID_RECORD.",
        lambda each: each.kafka == "timed out", (beginning()[0], *produce("a", None)),
    ),
    Listed(
        "Produce", "responses.partition_responses.error_message", "an error that does not concern single records",
        MORE, _has_text,
        (beginning()[0], produce("a", Batch(flaw="no records"))[0]),
    ),
    Listed(
        "FindCoordinator", "coordinators.error_message", "a key without a coordinator, from version 4 on", MORE,
        _has_text,
        ((FindCoordinatorRequest(key_type=2, coordinator_keys=["group"]), 6),),
    ),
    Listed(
        "ListOffsets", "topics.partitions.error_code", "an isolation level other than 0 and 1", EXCEPTION,
        _meets_exception, _list_offsets(isolation_level=2),
    ),
    Listed(
        "ListOffsets", "topics.partitions",
        "a timestamp up to the largest one of a segment whose records DeleteRecords has deleted",
        "Kafka searches this segment until it is removed, and finds nothing; Barnabas finds the first record after it.",
        lambda each: each.kafka == -1 and "emptied" in repr(each.request), _EMPTIED,
    ),
    Listed(
        "Fetch", "error_code", "an isolation level other than 0 and 1", EXCEPTION, _meets_exception,
        _fetch(7, isolation_level=2),
    ),
    Listed(
        "Fetch", "responses.partitions.error_code", "an isolation level other than 0 and 1", EXCEPTION,
        _meets_exception, _fetch(4, isolation_level=2),
    ),
    Listed(
        "WriteTxnMarkers", "outcome", "a partition that occurs twice for one producer",
        "Kafka writes one marker, waits for two and never responds; Barnabas writes and returns one.",
        lambda each: each.kafka == "timed out", (beginning()[0], end(5, ("a", 0), ("a", 0), commit=True)),
    ),
    Listed(
        "WriteTxnMarkers", "markers.topics.partitions.error_code", "a negative producer id or epoch", EXCEPTION,
        _meets_exception, (beginning()[0], end(-1, ("a", 0), commit=True)),
    ),
    Listed(
        "Fetch", "responses.partitions", "a negative `max_bytes` or `partition_max_bytes`",
        "Kafka fails with an unexpected exception; Barnabas treats it as 0.",
        lambda each: "max_bytes=-" in repr(each.request), _fetch(12, max_bytes=1000),
    ),
    Listed(
        "Fetch", ANYWHERE, "topic id zero, and several partitions of unknown topics",
        "Kafka fails with an unexpected exception; Barnabas returns UNKNOWN_TOPIC_ID.",
        _names_no_topic, ((_NO_TOPIC_TWICE, 16),),
    ),
    Listed(
        "Produce", "responses.partition_responses.error_code", "invalid acks together with invalid records",
        "There are two errors: Kafka returns the one of the records, Barnabas the one of acks.",
        lambda each: each.barnabas in ("INVALID_REQUIRED_ACKS", "UNSUPPORTED_COMPRESSION_TYPE")
        and each.kafka in ("INVALID_RECORD", "CORRUPT_MESSAGE", "UNKNOWN_SERVER_ERROR"),
        (beginning()[0], (_with_acks(2, *produce("a", Batch(flaw="two batches"))), 9)),
    ),
    Listed(
        "AlterUserScramCredentials", "results", "an empty salted password",
        "Kafka fails with an unexpected exception and alters no user; Barnabas returns UNACCEPTABLE_CREDENTIAL "
        "for that user.",
        lambda each: isinstance(each.request, AlterUserScramCredentialsRequest)
        and not all(upsertion.salted_password for upsertion in each.request.upsertions),
        ((AlterUserScramCredentialsRequest(upsertions=[ScramCredentialUpsertion("u", 1, 4096, b"salt", b"")]), 0),),
    ),
    Listed(
        "CreateDelegationToken", ANYWHERE, "an owner whose type is null",
        "Kafka fails with an unexpected exception; Barnabas returns DELEGATION_TOKEN_REQUEST_NOT_ALLOWED or "
        "INVALID_PRINCIPAL_TYPE.",
        lambda each: isinstance(each.request, CreateDelegationTokenRequest)
        and each.request.owner_principal_type is None and bool(each.request.owner_principal_name),
        ((CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="one"), 3),),
    ),
    Listed(
        "CreatePartitions", "results", "more than 10,000 new partitions at once",
        "Kafka fails with an unexpected exception, and its controller resigns; Barnabas returns INVALID_PARTITIONS.",
        lambda each: each.barnabas in ("INVALID_PARTITIONS", "a text"), _create_partitions(20_000),
        is_costly=True,
    ),
)  # fmt: skip


def reason_for(difference: Difference) -> str | None:
    """Return the reason for this difference; None if it is not intended."""
    return next((entry.reason for entry in LISTED if entry.allows(difference)), None)


def table() -> str:
    """Format the list as Markdown."""
    rows = [f"| {each.api} | `{each.path}` | {each.condition} | {each.reason} |\n" for each in LISTED]
    return "| API | Field | When | Why |\n|---|---|---|---|\n" + "".join(rows)


def page_with_table(page: str) -> str:
    """Return the page with its table replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
