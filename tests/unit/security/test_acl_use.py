from pathlib import Path

import pytest

from barnabas.security.acl_use import FORMER_FILE, AclUseRecord, acl_use_path, read_acl_use, write_acl_use
from barnabas.wire.acls import AclDecision, AclOperation, ResourceType


def test_what_is_written_is_read(tmp_path: Path) -> None:
    decisions = [
        AclDecision(
            "User:a", "h", AclOperation.READ, ResourceType.TOPIC, "t", is_allowed=True, last_used_ms=6
        ),
        AclDecision(
            "User:a", "h", AclOperation.WRITE, ResourceType.TOPIC, None, is_allowed=False, last_used_ms=7
        ),
    ]
    record = AclUseRecord(5, 4, {"one": 6, "two": 7}, {"two": 6}, decisions, 3)
    write_acl_use(tmp_path, 1, record)
    assert read_acl_use(tmp_path, 1, 99) == record


def test_brokers_that_share_a_directory_have_files_of_their_own(tmp_path: Path) -> None:
    one, two = AclUseRecord(5, 4, {"one": 6}, decisions=[]), AclUseRecord(6, 5, {"two": 7}, decisions=[])
    write_acl_use(tmp_path, 1, one)
    write_acl_use(tmp_path, 2, two)
    assert [read_acl_use(tmp_path, broker_id, 99) for broker_id in (1, 2)] == [one, two]


def test_the_file_of_an_older_broker_is_read_until_there_is_another(tmp_path: Path) -> None:
    (tmp_path / FORMER_FILE).write_text('{"since_ms": 5, "last_used_ms": {"one": 6}}')
    record = read_acl_use(tmp_path, 1, 99)
    assert record == AclUseRecord(5, 99, {"one": 6}, decisions=[])
    write_acl_use(tmp_path, 1, record)
    assert read_acl_use(tmp_path, 1, 99) == record
    acl_use_path(tmp_path, 1).unlink()
    assert read_acl_use(tmp_path, 1, 99) == AclUseRecord.empty(99)


def test_without_a_file_the_record_begins_now(tmp_path: Path) -> None:
    assert read_acl_use(tmp_path, 1, 99) == AclUseRecord.empty(99)


def test_a_file_without_decisions_was_written_by_an_older_broker(tmp_path: Path) -> None:
    acl_use_path(tmp_path, 1).write_text('{"since_ms": 5, "last_used_ms": {"one": 6}}')
    assert read_acl_use(tmp_path, 1, 99) == AclUseRecord(5, 99, {"one": 6}, decisions=[])


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"[]", b"{}", b'{"since_ms": 1, "last_used_ms": []}', b"\xff", b'{"since_ms": 1}'],
)
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes) -> None:
    acl_use_path(tmp_path, 1).write_bytes(content)
    assert read_acl_use(tmp_path, 1, 99) == AclUseRecord.empty(99)


def test_a_directory_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    write_acl_use(tmp_path / "missing", 1, AclUseRecord.empty(1))
