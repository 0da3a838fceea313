"""Cached files appear completely, whichever process writes them."""

import threading
from pathlib import Path

import pytest

from pyspark_barnabas.runtime.cache import cache_directory, create_once


def write(path: Path) -> None:
    path.mkdir()
    (path / "content").write_text("whole")


def test_the_cache_directory_is_configurable() -> None:
    assert cache_directory({"XDG_CACHE_HOME": "/caches", "HOME": "/home/alice"}) == Path("/caches/barnabas")
    assert cache_directory({"XDG_CACHE_HOME": "", "HOME": "/home/alice"}) == Path(
        "/home/alice/.cache/barnabas"
    )


def test_an_entry_is_created_if_missing_and_then_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "thing"
    assert create_once(path, write) == path
    (path / "content").write_text("kept")
    create_once(path, write)
    assert (path / "content").read_text() == "kept"
    assert [each.name for each in path.parent.iterdir()] == ["thing"]


def test_one_of_many_concurrent_writers_wins(tmp_path: Path) -> None:
    path = tmp_path / "thing"
    together = threading.Barrier(4)
    failures: list[Exception] = []

    def make() -> None:
        def write_together(made: Path) -> None:
            write(made)
            together.wait(30)

        try:
            create_once(path, write_together)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [each.name for each in tmp_path.iterdir()] == ["thing"]
    assert (path / "content").read_text() == "whole"


def test_a_failed_creation_leaves_nothing(tmp_path: Path) -> None:
    def fail(made: Path) -> None:
        write(made)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        create_once(tmp_path / "thing", fail)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_reported_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="set XDG_CACHE_HOME to use another directory"):
        create_once(tmp_path / "file" / "thing", write)
