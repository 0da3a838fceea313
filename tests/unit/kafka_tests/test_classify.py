"""Classification of results for the report."""

from dataclasses import replace
from pathlib import Path

import pytest
from interop.kafka_tests.classify import KINDS, Classification, classify, rules, stale
from interop.kafka_tests.results import NEVER_ENDED, Result

KNOWN = """
[[difference]]
tests = 'K\\.words.*'
reason = "other words"

[[not_applicable]]
tests = 'K\\.jvm \\[2\\].*'
kind = "internals of the JVM"
reason = "a metric"
"""


def result(status: str, method: str = "m", name: str = "m()", brokers: int = 1, **fields: object) -> Result:
    return Result("K", method, name, "id", status, brokers=brokers, **fields)  # type: ignore[arg-type]


def written(directory: Path, text: str) -> Path:
    path = directory / "known.toml"
    path.write_text(text)
    return path


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return written(tmp_path, KNOWN)


def test_a_success_has_passed_even_if_a_failure_is_listed(known: Path) -> None:
    assert classify(result("SUCCESSFUL", "words1"), rules(known)) == Classification("passed")


@pytest.mark.parametrize("status", ["FAILED", NEVER_ENDED])
def test_a_failure_has_failed_unless_it_is_listed(known: Path, status: str) -> None:
    assert classify(result(status), rules(known)).outcome == "failed"
    assert classify(result(status, "words1"), rules(known)) == Classification("listed", "", "other words")


def test_a_rule_may_apply_to_one_of_a_methods_parameters(known: Path) -> None:
    assert classify(result("FAILED", "jvm", "[2] x"), rules(known)) == Classification(
        "not applicable", "internals of the JVM", "a metric"
    )
    assert classify(result("FAILED", "jvm", "[1] x"), rules(known)).outcome == "failed"


def test_an_unsupported_feature_noted_by_the_harness_is_not_applicable() -> None:
    noted = result("FAILED", not_applicable=("internals of the JVM: LogManager.getLog", "TLS: listener"))
    assert classify(noted, []) == Classification(
        "not applicable", "internals of the JVM", "LogManager.getLog"
    )


def test_a_test_without_a_broker_is_not_counted() -> None:
    assert classify(result("SUCCESSFUL", brokers=0), []).outcome == "not counted"


def test_a_test_that_got_several_brokers_has_failed_even_if_one_broker_cannot_pass_it(tmp_path: Path) -> None:
    text = """
[[not_applicable]]
tests = 'K\\.stops'
kind = "several brokers"
reason = "a broker stops"
"""
    known = rules(written(tmp_path, text))
    for failed in (
        result("FAILED", "stops", brokers=3),
        result("FAILED", brokers=3, message="Replication factor: 3"),
    ):
        assert classify(failed, known).kind == "several brokers"
        assert classify(replace(failed, several=True), known).outcome == "failed"


def test_a_difference_that_only_several_brokers_show_is_not_listed_for_one(tmp_path: Path) -> None:
    text = """
[[difference]]
tests = 'K\\.moves'
reason = "other words"
several = true
"""
    known = rules(written(tmp_path, text))
    failed = result("FAILED", "moves", brokers=3, message="includes broker 1, which is not registered")
    assert classify(failed, known).kind == "several brokers"
    assert classify(replace(failed, several=True), known).outcome == "listed"


def test_a_rejected_share_group_is_not_applicable() -> None:
    message = "UnsupportedVersionException: The cluster does not support the share group protocol"
    assert classify(result("FAILED", message=message), []).kind == "share or streams groups"


def test_a_jvm_metric_is_not_applicable() -> None:
    assert classify(result("FAILED", message="Unable to find metric X"), []).kind == "internals of the JVM"


def test_a_rule_is_stale_when_its_tests_pass(known: Path) -> None:
    words, jvm = rules(known)
    assert stale([words, jvm], [result("SUCCESSFUL", "words1"), result("SUCCESSFUL", "words2")]) == [words]
    assert stale([words, jvm], [result("SUCCESSFUL", "words1"), result("FAILED", "words2")]) == []


def test_the_other_node_type_of_a_test_is_not_counted() -> None:
    assert classify(result("ABORTED", not_applicable=("duplicate: combined",)), []).outcome == "not counted"


def test_an_assumption_of_the_test_is_not_applicable() -> None:
    assert classify(result("ABORTED", message="not on this machine"), []).kind == "assumption"


def test_missing_replicas_fail_only_tests_that_requested_several_brokers() -> None:
    message = "InvalidReplicationFactorException: Unable to replicate"
    assert classify(result("FAILED", brokers=3, message=message), []).kind == "several brokers"
    assert classify(result("FAILED", brokers=1, message=message), []).outcome == "failed"
    assert classify(result("FAILED", brokers=3, message="expected: 1"), []).outcome == "failed"


def test_success_and_failure_outside_of_tests() -> None:
    assert classify(result("SUCCESSFUL", test=False), []).outcome == "not counted"
    assert classify(result("SKIPPED"), []).outcome == "not counted"
    assert classify(result("FAILED", test=False), []).outcome == "failed"


def test_an_unknown_kind_is_rejected(tmp_path: Path) -> None:
    path = written(tmp_path, '[[not_applicable]]\ntests = "x"\nkind = "moon"\nreason = "y"\n')
    with pytest.raises(ValueError, match="'moon' is not one of: several brokers"):
        rules(path)


def test_the_list_of_known_failures_is_valid() -> None:
    assert all(rule.reason and (not rule.kind or rule.kind in KINDS) for rule in rules())
