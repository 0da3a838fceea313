from pathlib import Path

import pytest

from barnabas.security.acl_use import FILE, AclUseRecord, read_acl_use, write_acl_use


def test_what_is_written_is_read(tmp_path: Path) -> None:
    record = AclUseRecord(5, {"one": 6, "two": 7})
    write_acl_use(tmp_path, record)
    assert read_acl_use(tmp_path, 99) == record


def test_without_a_file_the_record_begins_now(tmp_path: Path) -> None:
    assert read_acl_use(tmp_path, 99) == AclUseRecord(99)


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"[]", b"{}", b'{"since_ms": 1, "last_used_ms": []}', b"\xff", b'{"since_ms": 1}'],
)
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert read_acl_use(tmp_path, 99) == AclUseRecord(99)


def test_a_directory_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    write_acl_use(tmp_path / "missing", AclUseRecord(1))
