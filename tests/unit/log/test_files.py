from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.log.files import (
    offset_file,
    offset_of,
    sync_file_system,
    sync_path,
    unlink_files,
    unlink_possible,
    write_atomically,
)


def test_files_are_named_by_twenty_digits(tmp_path: Path) -> None:
    assert offset_file(tmp_path, 42, ".log").name == "00000000000000000042.log"


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000042.log", 42),
        ("7.index.deleted", 7),
        ("partition.metadata", None),
        ("", None),
        ("²", None),
    ],
)
def test_offset_is_parsed_from_a_file_name(name: str, offset: int | None) -> None:
    assert offset_of(name) == offset


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old and long", sync=sync)
    write_atomically(path, b"new", sync=sync)
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_syncing_and_removing_missing_files_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    sync_path(tmp_path / "none")
    unlink_files([tmp_path / "a", tmp_path / "none"])
    assert not (tmp_path / "a").exists()


def test_a_file_that_cannot_be_removed_does_not_stop_the_removal_of_others(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "b").touch()
    failed = unlink_possible([tmp_path / "none", tmp_path / "directory", tmp_path / "b"])
    assert [(path.name, error.strerror) for path, error in failed.items()] == [
        ("directory", "Is a directory")
    ]
    assert not (tmp_path / "b").exists()


def test_a_whole_file_system_is_flushed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert sync_file_system(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_file_system(tmp_path / "missing")


def test_a_failed_file_system_flush_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: SimpleNamespace(syncfs=lambda fd: -1))
    monkeypatch.setattr("ctypes.get_errno", lambda: 5)
    with pytest.raises(OSError, match="Input/output error"):
        sync_file_system(tmp_path)


def test_false_is_returned_if_syncfs_is_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: SimpleNamespace())
    assert not sync_file_system(tmp_path)
