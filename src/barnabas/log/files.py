"""Names of the files in a log directory, and writing them so that a crash leaves the old or the new."""

import errno
import os
from pathlib import Path

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

#: How long what could not be removed is left alone before it is tried again.
REMOVAL_RETRY_MS = 60_000

#: Errors of a volume, or of a user's share of it, that is full.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

#: The files of one segment, data first.
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def space_advice(error: OSError) -> dict[str, str]:
    """Return a field for the log that says what to do, if the volume is full."""
    if error.errno not in NO_SPACE:
        return {}
    return {"to_do": "free space on the volume as docs/operations.md says, then start the broker again"}


def offset_file(directory: Path, offset: int, suffix: str) -> Path:
    """The file of `directory` that is named after an offset: twenty digits and a suffix."""
    return directory / f"{offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset in a file's name, or None when the name has none."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else None


def write_atomically(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace the file in one step; with `sync` it is on the disk before its name is. Blocks."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)
    if sync:
        sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Flush a file or a directory to the disk; one that is gone needs none. Blocks."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file_system(path: Path) -> bool:
    """Flush all of the file system that `path` is on; False where the operating system cannot do that. Blocks.

    Of thousands of files this costs a small part of what `sync_path` does one by one.

    :raises OSError: When something of it could not be written.
    """
    import ctypes  # loads slowly, and is needed for many files alone

    flush = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if flush is None:
        return False
    fd = os.open(path, os.O_RDONLY)
    try:
        if flush(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(fd)
    return True


def unlink_files(paths: list[Path]) -> None:
    """Remove files, those that are gone already included. Blocks: run it in a thread."""
    for path in paths:
        path.unlink(missing_ok=True)


def unlink_what_can_be(paths: list[Path]) -> dict[Path, OSError]:
    """Remove files as `unlink_files` does; gives back those that stay, and why. Blocks: run it in a thread."""
    failed = {}
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            failed[path] = error
    return failed
