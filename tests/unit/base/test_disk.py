from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.base import disk


def test_a_file_is_written_extended_and_truncated(tmp_path: Path) -> None:
    path = tmp_path / "file"
    disk.write_file(path, b"abc", sync=True)
    disk.append_to_file(path, b"def")
    assert path.read_bytes() == b"abcdef"
    disk.truncate_file(path, 2)
    assert path.read_bytes() == b"ab"


def test_an_open_file_is_written_at_positions(tmp_path: Path) -> None:
    fd = disk.open_file(tmp_path / "file")
    disk.allocate(fd, 8)
    assert disk.write_at(fd, b"xy", 3) == 2
    disk.truncate(fd, 5)
    assert (tmp_path / "file").read_bytes() == b"\0\0\0xy"


def test_a_rename_replaces_a_file(tmp_path: Path) -> None:
    disk.write_file(tmp_path / "a", b"new")
    disk.write_file(tmp_path / "b", b"old")
    assert disk.rename(tmp_path / "a", tmp_path / "b") == tmp_path / "b"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("b", b"new")]


def test_flushing_or_removing_what_does_not_exist_is_not_an_error(tmp_path: Path) -> None:
    disk.sync_path(tmp_path / "none")
    disk.remove_file(tmp_path / "none")
    disk.remove_directory(tmp_path / "none")


def test_a_whole_file_system_is_flushed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert disk.sync_file_system(tmp_path)
    with pytest.raises(FileNotFoundError):
        disk.sync_file_system(tmp_path / "missing")


def test_a_failed_file_system_flush_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: SimpleNamespace(syncfs=lambda fd: -1))
    monkeypatch.setattr("ctypes.get_errno", lambda: 5)
    with pytest.raises(OSError, match="Input/output error"):
        disk.sync_file_system(tmp_path)


def test_false_is_returned_if_syncfs_is_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: SimpleNamespace())
    assert not disk.sync_file_system(tmp_path)
