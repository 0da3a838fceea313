"""Removing directories of deleted logs."""

import shutil
from pathlib import Path

import pytest

from barnabas.log.deletions import Deletions
from barnabas.log.files import REMOVAL_RETRY_MS


@pytest.fixture
def deleted(tmp_path: Path) -> Path:
    path = tmp_path / "t-0.x-delete"
    path.mkdir()
    (path / "file").touch()
    return path


def test_a_directory_is_removed_when_that_is_due(deleted: Path) -> None:
    deletions = Deletions()
    deletions.add(deleted, 500)
    assert deletions.remove_due(499) == 0
    assert deleted.exists()
    assert deletions.remove_due(500) == 1
    assert not deleted.exists()
    assert deletions.remove_due(501) == 0


def test_the_removal_of_a_directory_is_retried(deleted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deletions = Deletions()
    deletions.add(deleted, 0)
    with monkeypatch.context() as failing:
        failing.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
        assert deletions.remove_due(0) == 0
    assert deletions.remove_due(REMOVAL_RETRY_MS - 1) == 0
    assert deletions.remove_due(REMOVAL_RETRY_MS) == 1
    assert not deleted.exists()
