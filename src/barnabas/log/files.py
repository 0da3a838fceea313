"""Names of the files in a log directory, and helpers that write, flush and remove files."""

import errno
from pathlib import Path

from barnabas.base import disk

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

#: How long to wait before trying again to remove a file or directory that could not be removed.
REMOVAL_RETRY_MS = 60_000

#: Errors that mean that the volume is full, or that the user's quota on it is used up.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

#: Errors of a process that has too many files or maps, or too little memory; the disk is all right.
NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

#: The files of one segment; the data file comes first.
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def space_advice(error: OSError) -> dict[str, str]:
    """Return a log event field with advice if the volume is full, else no field."""
    if error.errno not in NO_SPACE:
        return {}
    return {"to_do": "free space on the volume (docs/operations.md), then restart the broker"}


def offset_file(directory: Path, offset: int, suffix: str) -> Path:
    """Return the path of the file in `directory` that is named after an offset: twenty digits and a suffix."""
    return directory / f"{offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """Return the offset in a file's name, or None if the name does not begin with one."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else None


def write_atomically(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace the file atomically: after a crash it has either its old or its new content. Blocks.

    With `sync` the content is flushed to the disk before the rename.
    """
    temporary = path.with_name(path.name + ".tmp")
    disk.write_file(temporary, data, sync=sync)
    disk.rename(temporary, path)
    if sync:
        disk.sync_path(path.parent)


def unlink_files(paths: list[Path]) -> None:
    """Remove files; those that do not exist are ignored. Blocks: run it in a thread."""
    for path in paths:
        disk.remove_file(path)


def unlink_possible(paths: list[Path]) -> dict[Path, OSError]:
    """Remove files like `unlink_files`, but return those that could not be removed, with the error. Blocks."""
    failed = {}
    for path in paths:
        try:
            disk.remove_file(path)
        except OSError as error:
            failed[path] = error
    return failed
