import pytest

from barnabas.security import recorded_decisions as module
from barnabas.security.recorded_decisions import KEPT_NAME_LENGTH_MAX, Question, RecordedDecisions
from barnabas.wire.acls import AclDecision, AclOperation, ResourceType
from support.acls import ALICE


def question(name: str) -> Question:
    return ALICE, "h", AclOperation.READ, ResourceType.TOPIC, name


def names(recorded: RecordedDecisions) -> dict[str | None, bool]:
    return {each.name: each.is_allowed for each in recorded.all()}


def test_the_last_decision_on_a_question_is_kept() -> None:
    recorded = RecordedDecisions(since_ms=4)
    recorded.add(question("t"), 5, is_allowed=True)
    recorded.add(question("t"), 6, is_allowed=False)
    assert list(recorded.all()) == [AclDecision(*question("t"), is_allowed=False, last_used_ms=6)]
    assert (recorded.since_ms, len(recorded), recorded.left_out_count) == (4, 1, 0)


def test_those_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_COUNT_MAX", 3)
    recorded = RecordedDecisions(since_ms=4)
    for name in ("a", "b", "c", "a", "d"):
        recorded.add(question(name), 5, is_allowed=True)
    assert names(recorded).keys() == {"a", "c", "d"}
    assert recorded.left_out_count == 1


def test_refusals_displace_nothing_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_COUNT_MAX", 3)
    recorded = RecordedDecisions(since_ms=4)
    recorded.add(question("mine"), 5, is_allowed=True)
    for number in range(10):
        recorded.add(question(f"invented{number}"), 5, is_allowed=False)
    assert names(recorded) == {
        "mine": True,
        "invented7": False,
        "invented8": False,
        "invented9": False,
    }
    assert (len(recorded), recorded.left_out_count) == (4, 7)


def test_long_names_are_left_out() -> None:
    recorded = RecordedDecisions(since_ms=4)
    recorded.add(question("x" * KEPT_NAME_LENGTH_MAX), 5, is_allowed=True)
    recorded.add(question("x" * (KEPT_NAME_LENGTH_MAX + 1)), 5, is_allowed=True)
    assert (len(recorded), recorded.left_out_count) == (1, 1)


def test_decisions_that_are_added_while_others_are_read_do_no_harm() -> None:
    recorded = RecordedDecisions(since_ms=4)
    recorded.add(question("a"), 5, is_allowed=True)
    reading = recorded.all()
    recorded.add(question("b"), 5, is_allowed=True)
    assert [each.name for each in reading] == ["a"]
