"""Locks on files, within one process and between two."""

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.base.file_lock import FileLock, Locked, is_held, locked

HOLD = """
import sys
from pathlib import Path
from barnabas.base.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_a_second_lock_fails_until_the_first_is_released(path: Path) -> None:
    first = FileLock(path)
    with pytest.raises(Locked, match=str(path)):
        FileLock(path)
    first.release()
    FileLock(path).release()


def test_a_lock_ends_with_the_process_that_holds_it(path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Locked):
            FileLock(path)
        holder.kill()
        holder.wait()
    FileLock(path).release()


def test_a_held_lock_is_detected_without_acquiring_it(path: Path) -> None:
    assert not is_held(path)
    lock = FileLock(path)
    assert is_held(path)
    lock.release()
    assert not is_held(path)


def test_a_missing_directory_is_not_locked(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(path / "lock")


def test_the_error_for_a_held_lock_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "made" / "lock"
    with locked(path, ValueError("busy")):
        assert is_held(path)
        with pytest.raises(ValueError, match="busy"), locked(path, ValueError("busy")):
            pass
    assert not is_held(path)
