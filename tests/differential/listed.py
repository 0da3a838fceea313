"""The differences that are meant: the only ones that the tests let pass, each with its reason.

The table in docs/differences.md is made of this one: `python -m differential.listed` (in tests/) writes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.schema import Message
from differential.compare import MISSING, Difference
from differential.sequences import create, topic

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
    example: tuple[tuple[Message, int], ...]

    def allows(self, difference: Difference) -> bool:
        same_place = (difference.api, difference.path) == (self.api, self.path)
        return same_place and self.applies(difference)


def _is_missing(difference: Difference) -> bool:
    return difference.barnabas is MISSING


def _is_at(*parts: str) -> Callable[[Difference], bool]:
    return lambda difference: any(part in difference.at for part in parts)


#: Kafka sets this key for the whole cluster when it turns KIP-966 on.
_MIN_ISR = "[min.insync.replicas]"
_CREATE = create(topic("listed"))
_ELR = (
    "Kafka 4.3 writes `min.insync.replicas` as a cluster-wide dynamic default when it turns on eligible leader "
    "replicas (KIP-966); Barnabas has neither yet."
)
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
