import json
from pathlib import Path

import pytest

from barnabas.cli.decision_file import add_decisions, read_decisions
from barnabas.cli.support.failures import CommandError
from barnabas.wire.acls import AclDecision, AclOperation, DecisionRecord, ResourceType

OLD = AclDecision(
    "User:alice",
    "h",
    AclOperation.DESCRIBE_CONFIGS,
    ResourceType.TRANSACTIONAL_ID,
    "t",
    is_allowed=True,
    last_used_ms=5,
)
NEW = OLD._replace(is_allowed=False, last_used_ms=9)
ANY = OLD._replace(name=None)
RECORD = DecisionRecord(3, [OLD, ANY], 4, frozenset({"User:a"}), allows_if_no_acl=True)


def test_a_record_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "decisions"
    assert add_decisions(path, RECORD) == RECORD
    assert read_decisions(path) == RECORD
    about, first, _ = map(json.loads, path.read_text().splitlines())
    assert about == {"since_ms": 3, "left_out_count": 4, "super_users": ["User:a"], "allows_if_no_acl": True}
    assert first == {
        "principal": "User:alice",
        "host": "h",
        "operation": "describe-configs",
        "resource": "transactional-id",
        "name": "t",
        "allowed": True,
        "last_used_ms": 5,
    }


def test_decisions_are_added_to_a_file_and_later_ones_replace_earlier(tmp_path: Path) -> None:
    path = tmp_path / "decisions"
    add_decisions(path, RECORD)
    add_decisions(path, DecisionRecord(7, [NEW]))
    assert read_decisions(path) == DecisionRecord(3, [NEW, ANY])


def test_lines_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "decisions"
    add_decisions(path, RECORD)
    path.write_text(path.read_text().splitlines()[1] + "\n\n")
    assert read_decisions(path) == DecisionRecord(0, [OLD])


@pytest.mark.parametrize(
    "line",
    ["no JSON", "[]", "7", "{}", '{"principal": "User:x"}', '{"since_ms": "x"}', '"principal"'],
)
def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path, line: str) -> None:
    path = tmp_path / "decisions"
    path.write_text("\n" + line)
    with pytest.raises(CommandError, match=r"line 2 is not a recorded decision$"):
        add_decisions(path, RECORD)
    assert path.read_text() == "\n" + line


def test_an_unknown_operation_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "decisions"
    add_decisions(path, RECORD)
    path.write_text(path.read_text().replace("describe-configs", "guess"))
    with pytest.raises(CommandError, match="line 2 is not"):
        read_decisions(path)
