from pathlib import Path

import pytest

from barnabas.log.files import (
    offset_file,
    offset_of,
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


def test_removing_missing_files_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
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
