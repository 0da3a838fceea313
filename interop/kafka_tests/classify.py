"""Classification of a test: passed, failed for a listed reason or an unknown one, or not applicable to Barnabas."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interop.kafka_tests.results import Result

KNOWN = Path(__file__).with_name("known.toml")

Outcome = Literal["passed", "listed", "failed", "not applicable", "not counted"]

#: The kind of tests that one broker cannot pass.
SEVERAL_BROKERS = "several brokers"

#: Kinds of tests that do not apply, in the order of the report, each with its meaning.
KINDS = {
    SEVERAL_BROKERS: "the test needs more than one broker: replicas, leader changes, brokers that stop",
    "share or streams groups": "share groups (KIP-932) and streams groups (KIP-1071), which Barnabas does not have",
    "internals of the JVM": "the test uses a broker's objects, metrics or threads in its own JVM",
    "controller listener": "the test connects to a controller listener, which Barnabas does not have",
    "old metadata.version": "the test starts with an older metadata.version than Barnabas formats",
    "unreleased metadata.version": "the test formats metadata.version 4.4-IV0, which Kafka 4.3 has not released",
    "tiered storage": "tiered storage (KIP-405)",
    "Java plugin": "the test needs a Java class in the broker",
    "SASL mechanism": "SASL/GSSAPI",
    "assumption": "the test itself says that it does not apply",
}
#: In the failure of a test that requested several brokers and got one.
_MISSING_BROKERS = re.compile(
    r"INVALID_REPLICATION_FACTOR|InvalidReplicationFactor|[Rr]eplication factor|includes broker \d|not registered|"
    r"InvalidReplicaAssignment|INVALID_REPLICA_ASSIGNMENT|Timed out waiting for a node assignment"
)
_JVM = re.compile(r"Unable to find metric")
_OTHER_GROUPS = re.compile(r"(share|streams) group protocol|(Share|Streams)Group\w+ API|SHARE_|STREAMS_GROUP")


@dataclass(frozen=True, slots=True)
class Rule:
    """Tests that were investigated, and the reason of their failure."""

    tests: re.Pattern[str]  #: matches class.method, or class.method and the display name after a space
    kind: str  #: of KINDS, or "" for a difference of Barnabas
    reason: str
    needs_several: bool = False  #: whether only runs with several brokers get as far as the difference

    def matches(self, result: Result) -> bool:
        """Return whether the rule applies to this test."""
        if self.needs_several and not result.several:
            return False
        return any(self.tests.fullmatch(each) for each in (result.key, f"{result.key} {result.name}"))


@dataclass(frozen=True, slots=True)
class Classification:
    """The class of a test in the report."""

    outcome: Outcome
    kind: str = ""
    reason: str = ""


def rules(path: Path = KNOWN) -> list[Rule]:
    """Return the rules in known.toml.

    :raises ValueError: a kind is not one of KINDS.
    """
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    listed = [
        Rule(re.compile(each["tests"]), "", each["reason"], each.get("several", False))
        for each in document.get("difference", [])
    ]
    for each in document.get("not_applicable", []):
        if each["kind"] not in KINDS:
            raise ValueError(f"known.toml: kind {each['kind']!r} is not one of: {', '.join(KINDS)}")
        listed.append(Rule(re.compile(each["tests"]), each["kind"], each["reason"]))
    return listed


def classify(result: Result, known: Sequence[Rule]) -> Classification:
    """Return the classification of a result.

    A test that passes counts as passed, even if it is listed; one that requested no broker does not count.
    """
    if result.status == "SUCCESSFUL":
        return Classification("passed" if result.test and result.brokers else "not counted")
    if result.status == "SKIPPED":
        return Classification("not counted", reason="disabled by Kafka")
    kinds = [text.partition(": ") for text in result.not_applicable]
    if any(kind == "duplicate" for kind, _, _ in kinds):
        return Classification("not counted", reason="the other node type")
    if kinds:
        return Classification("not applicable", kinds[0][0], kinds[0][2])
    if result.status == "ABORTED":
        return Classification("not applicable", "assumption", result.message)
    return _classify_failure(result, known)


def _classify_failure(result: Result, known: Sequence[Rule]) -> Classification:
    for rule in known:
        if rule.matches(result) and not (result.several and rule.kind == SEVERAL_BROKERS):
            return Classification("not applicable" if rule.kind else "listed", rule.kind, rule.reason)
    if result.brokers > 1 and not result.several and _MISSING_BROKERS.search(result.message):
        return Classification("not applicable", SEVERAL_BROKERS, "one broker cannot hold the replicas")
    if _JVM.search(result.message):
        return Classification("not applicable", "internals of the JVM", "a metric of the JVM")
    if _OTHER_GROUPS.search(result.message):
        return Classification(
            "not applicable", "share or streams groups", "the test uses a share or streams group"
        )
    return Classification("failed")


def stale(known: Sequence[Rule], results: Iterable[Result]) -> list[Rule]:
    """Return the rules that match some of these tests, all of which pass."""
    everything = list(results)
    about = {
        rule: [each.status == "SUCCESSFUL" for each in everything if rule.matches(each)] for rule in known
    }
    return [rule for rule, passed in about.items() if passed and all(passed)]
