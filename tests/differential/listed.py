"""The differences that are meant: the only ones that the tests let pass, each with its reason.

The table in docs/differences.md is made of this one: `python -m differential.listed` (in tests/) writes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from differential.batches import Batch
from differential.compare import MISSING, Difference
from differential.sequences import Step, beginning, create, produce, topic

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
BEGIN, END = "<!-- the table is generated -->\n", "<!-- end of the generated table -->\n"


@dataclass(frozen=True)
class Listed:
    """A field in which Barnabas means to differ."""

    api: str
    path: str
    condition: str  #: when it differs, for people
    reason: str
    applies: Callable[[Difference], bool]
    #: requests of which the last shows the difference, at the version given
    example: tuple[Step, ...]

    def allows(self, difference: Difference) -> bool:
        same_place = (difference.api, difference.path) == (self.api, self.path)
        return same_place and self.applies(difference)


def _is_missing(difference: Difference) -> bool:
    return difference.barnabas is MISSING


def _meets_exception(difference: Difference) -> bool:
    return (difference.kafka, difference.barnabas) == ("UNKNOWN_SERVER_ERROR", "INVALID_REQUEST")


def _has_text(difference: Difference) -> bool:
    return difference.kafka is None and difference.barnabas == "a text"


def _is_at(*parts: str) -> Callable[[Difference], bool]:
    return lambda difference: any(part in difference.at for part in parts)


def _list_offsets(**fields: Any) -> tuple[Step, ...]:
    topics = [ListOffsetsTopic("missing", [ListOffsetsPartition(0)])]
    return ((ListOffsetsRequest(replica_id=-1, topics=topics, **fields), 2),)


def _fetch(version: int, **fields: Any) -> tuple[Step, ...]:
    topics = [FetchTopic("missing", partitions=[FetchPartition(0)])]
    return ((FetchRequest(topics=topics, **fields), version),)


#: Kafka sets this key for the whole cluster when it turns KIP-966 on.
_MIN_ISR = "[min.insync.replicas]"
_CREATE = create(topic("listed"))
_ELR = (
    "Kafka 4.3 writes `min.insync.replicas` as a cluster-wide dynamic default when it turns on eligible leader "
    "replicas (KIP-966); Barnabas has neither yet."
)
_EXCEPTION = "Kafka meets an exception that it does not expect; Barnabas says that the request is wrong."
_NO_FEATURES = "Barnabas has no feature levels to negotiate yet."
_API_VERSIONS = ((ApiVersionsRequest("differential", "1"), 4),)

LISTED = (
    Listed(
        "ApiVersions", "api_keys", "an API that Barnabas does not serve yet",
        "What is advertised is what is served.", _is_missing, _API_VERSIONS,
    ),
    Listed(
        "ApiVersions", "api_keys.max_version", "InitProducerId: Kafka 5, Barnabas 6",
        "Kafka 4.3 has version 6 (KIP-939) behind its switch for unstable versions; Barnabas reads and answers it.",
        _is_at("api_keys[22]"), _API_VERSIONS,
    ),
    Listed("ApiVersions", "supported_features", "always", _NO_FEATURES, _is_missing, _API_VERSIONS),
    Listed("ApiVersions", "finalized_features", "always", _NO_FEATURES, _is_missing, _API_VERSIONS),
    Listed("ApiVersions", "finalized_features_epoch", "always", _NO_FEATURES, lambda _: True, _API_VERSIONS),
    Listed("CreateTopics", "topics.configs.config_source", "`min.insync.replicas`", _ELR, _is_at(_MIN_ISR), (_CREATE,)),
    Listed(
        "DescribeProducers", "topics.partitions.error_message", "UNKNOWN_TOPIC_OR_PARTITION",
        "Kafka says nothing more; Barnabas says what is missing.", _has_text,
        ((DescribeProducersRequest([TopicRequest("missing", [0])]), 0),),
    ),
    Listed(
        "Produce", "responses.partition_responses.error_message", "an error that is not about single records",
        "Kafka says nothing more; Barnabas says what is wrong.", _has_text,
        (beginning()[0], produce("a", Batch(flaw="no records"))[0]),
    ),
    Listed(
        "ListOffsets", "topics.partitions.error_code", "an isolation level other than 0 and 1", _EXCEPTION,
        _meets_exception, _list_offsets(isolation_level=2),
    ),
    Listed(
        "Fetch", "error_code", "an isolation level other than 0 and 1", _EXCEPTION, _meets_exception,
        _fetch(7, isolation_level=2),
    ),
    Listed(
        "Fetch", "responses.partitions.error_code", "an isolation level other than 0 and 1", _EXCEPTION,
        _meets_exception, _fetch(4, isolation_level=2),
    ),
)  # fmt: skip


def reason_for(difference: Difference) -> str | None:
    """Why this difference is meant; None when it is not."""
    return next((entry.reason for entry in LISTED if entry.allows(difference)), None)


def table() -> str:
    """The list as Markdown."""
    rows = [f"| {each.api} | `{each.path}` | {each.condition} | {each.reason} |\n" for each in LISTED]
    return "| API | Field | When | Why |\n|---|---|---|---|\n" + "".join(rows)


def page_with_table(page: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
