import os
from pathlib import Path

from barnabas.base.buffers import is_truncated
from support.mapped import mapped_file


def test_a_view_of_a_truncated_file_is_found(tmp_path: Path) -> None:
    view = mapped_file(tmp_path / "00.log", 100)
    assert not is_truncated(view)
    os.truncate(tmp_path / "00.log", 99)
    assert is_truncated(view)
    assert is_truncated(view[:1])


def test_a_file_that_grows_and_is_deleted_is_not_truncated(tmp_path: Path) -> None:
    view = mapped_file(tmp_path / "00.log", 100)
    os.truncate(tmp_path / "00.log", 200)
    (tmp_path / "00.log").unlink()
    assert not is_truncated(view)


def test_buffers_in_memory_are_not_truncated() -> None:
    assert not any(map(is_truncated, (b"a", bytearray(b"a"), memoryview(b"a"), memoryview(bytearray(b"a")))))
