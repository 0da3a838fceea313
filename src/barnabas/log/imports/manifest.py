"""Segments that a process beside the broker has compacted, and how it hands them over.

In the log's directory lies `replacement/`: first the files of the segments, whose names are free, and as the last of
all, by a rename, `manifest.json`. Before that the broker looks at nothing. Who prepares them holds a lock (`flock`) on
the log's directory: what lies there without a manifest while the lock is free was left by somebody who died, and is
removed. What became of it the broker writes to `outcome.json`, in the place of the manifest and all files.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.base.ids import uuid_from_text, uuid_to_text
from barnabas.log.files import sync_path, write_atomically
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.log.startup.checkpoints import MalformedFile
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    BATCH_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    BatchHeader,
    read_header,
)

REPLACEMENT_DIRECTORY = "replacement"
MANIFEST_FILE = "manifest.json"
OUTCOME_FILE = "outcome.json"

_VERSION = 0
_DIGEST_BYTES = 16
_WINDOW_BYTES = 64 * 1024
_LENGTH_BYTES_MIN = BATCH_HEADER_BYTES - BATCH_OVERHEAD_BYTES


class Replaced(NamedTuple):
    """A segment of the log as it was read: only in its place may something else be put."""

    base_offset: int
    size_bytes: int
    #: Of all its headers, which have the CRCs of what follows them.
    digest: str


class ImportedSegment(NamedTuple):
    """A segment that is handed over."""

    file: str
    #: Where the log has it; the first of `replaced` begins there.
    base_offset: int
    #: Where the next segment begins.
    end_offset: int
    size_bytes: int
    #: Of its own headers.
    digest: str
    #: Neighbours, which it takes the place of.
    replaced: tuple[Replaced, ...]
    #: What its transaction index is to have.
    aborted: tuple[AbortedTransaction, ...] = ()


class ImportManifest(NamedTuple):
    """All that is handed over to one log, in the order of offsets."""

    topic_id: bytes
    parts: tuple[ImportedSegment, ...]
    #: From here on it was looked for the latest of each key.
    first_dirty_offset: int = 0


class ImportResult(NamedTuple):
    """What became of a replacement."""

    adopted: bool
    #: Why not, for people.
    why: str = ""


def headers_of(fd: int, size_bytes: int) -> Iterator[list[BatchHeader]]:
    """The headers of a file of batches, some at a time; what lies between is passed over unread where it is much.

    :raises KafkaError: CORRUPT_MESSAGE where there is no batch.
    """
    position = 0
    while position < size_bytes:
        data = os.pread(fd, min(_WINDOW_BYTES, size_bytes - position), position)
        headers: list[BatchHeader] = []
        step = 0
        while len(data) - step >= BATCH_HEADER_BYTES:
            header = read_header(data, step)
            if header.magic != MAGIC or header.batch_length < _LENGTH_BYTES_MIN:
                raise _damaged(position + step)
            headers.append(header)
            step += header.size_bytes
        if not headers or position + step > size_bytes:
            raise _damaged(position)
        position += step
        yield headers


def _damaged(position: int) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"there is no whole batch at byte {position}")


class HeaderDigest:
    """Told of all headers of a segment, in order; two segments that have the same hold the same.

    Leader epochs, which a leader gives, do not count.
    """

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=_DIGEST_BYTES)

    def update(self, headers: Iterable[BatchHeader]) -> None:
        """Take these in."""
        pack = BATCH_HEADER.pack
        self._hash.update(
            b"".join([pack(header[0], header[1], NO_LEADER_EPOCH, *header[3:]) for header in headers])
        )

    @property
    def text(self) -> str:
        """As a manifest has it."""
        return self._hash.hexdigest()


def digest_of(path: Path, size_bytes: int) -> str:
    """The digest of a file's headers. Blocks.

    :raises KafkaError: CORRUPT_MESSAGE where there is no batch.
    """
    digest = HeaderDigest()
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for headers in headers_of(fd, size_bytes):
            digest.update(headers)
    finally:
        os.close(fd)
    return digest.text


# Preparing


class Claim:
    """The right to prepare a replacement for the log in `directory`; of one process at a time, and gone with it."""

    def __init__(self, directory: Path) -> None:
        """Take the right, and remove what somebody has left who had it.

        :raises FileNotFoundError: When there is no such log.
        :raises FileExistsError: When somebody else has the right, or a replacement waits for the broker.
        """
        self.directory = directory
        self.path = directory / REPLACEMENT_DIRECTORY
        self._fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not _lock(self._fd):
                message = "segments are being prepared for this log already"
                raise FileExistsError(errno.EEXIST, message, str(self.path))
            if (self.path / MANIFEST_FILE).exists():
                message = "segments wait for the broker to adopt them"
                raise FileExistsError(errno.EEXIST, message, str(self.path))
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir()
            self._give_to_owner()
        except BaseException:
            os.close(self._fd)
            raise

    def _give_to_owner(self) -> None:
        """Let the broker remove what root has written for it."""
        owner = self.directory.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.chown(self.path, owner.st_uid, owner.st_gid)

    def publish(self, manifest: ImportManifest) -> None:
        """Hand over: everything goes to the disk, the manifest last; other files are removed. Blocks."""
        _remove(self.path, {part.file for part in manifest.parts})
        for part in manifest.parts:
            sync_path(self.path / part.file)
        sync_path(self.path)
        sync_path(self.directory)
        write_atomically(self.path / MANIFEST_FILE, _to_json(manifest))

    def outcome(self) -> ImportResult | None:
        """What the broker has done with it; None while it waits, or is at it."""
        if (self.path / MANIFEST_FILE).exists():
            return None
        try:
            found = json.loads((self.path / OUTCOME_FILE).read_text())
        except FileNotFoundError:
            return ImportResult(adopted=False, why="the log is gone, or has been moved to another directory")
        return ImportResult(bool(found["adopted"]), str(found["why"]))

    def release(self) -> None:
        """Give the right back; what waits for the broker stays, all else goes."""
        if not (self.path / MANIFEST_FILE).exists():
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# Adopting


def remove_abandoned(directory: Path) -> bool:
    """Remove a replacement without manifest whose preparer is gone; whether there is none now. Blocks."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        path = directory / REPLACEMENT_DIRECTORY
        if not _lock(fd) or (path / MANIFEST_FILE).exists():
            return False
        shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(fd)


def conclude(path: Path, outcome: ImportResult) -> None:
    """Leave nothing of a replacement but what became of it; the manifest goes last, as it keeps others out. Blocks."""
    with suppress(FileNotFoundError):  # the log has been deleted meanwhile
        _remove(path, {MANIFEST_FILE})
        write_atomically(path / OUTCOME_FILE, json.dumps(outcome._asdict()).encode(), sync=False)
        (path / MANIFEST_FILE).unlink(missing_ok=True)


def _remove(path: Path, kept: Collection[str]) -> None:
    """Leave nothing in a directory but what is to be kept."""
    for each in path.iterdir():
        if each.name in kept:
            continue
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)  # of somebody who is still at it, perhaps
        else:
            each.unlink()


def read_manifest(path: Path) -> ImportManifest:
    """What is handed over in the directory `path`. Blocks.

    :raises FileNotFoundError: When it is not whole yet, or gone.
    :raises MalformedFile: When it is not what it should be.
    """
    file = path / MANIFEST_FILE
    try:
        found = json.loads(file.read_bytes())
        if found["version"] != _VERSION:
            raise MalformedFile(f"{file}: version {found['version']}: {_VERSION} is known")
        manifest = ImportManifest(
            uuid_from_text(found["topic_id"]),
            tuple(map(_part, found["parts"])),
            int(found["first_dirty_offset"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedFile(f"{file}: {error!r}") from error
    _check(file, manifest)
    return manifest


def _part(found: Mapping[str, Any]) -> ImportedSegment:
    replaced = tuple(
        Replaced(int(each["base_offset"]), int(each["size_bytes"]), str(each["digest"]))
        for each in found["replaced"]
    )
    aborted = tuple(AbortedTransaction(*map(int, each)) for each in found["aborted"])
    return ImportedSegment(
        str(found["file"]),
        int(found["base_offset"]),
        int(found["end_offset"]),
        int(found["size_bytes"]),
        str(found["digest"]),
        replaced,
        aborted,
    )


def _check(file: Path, manifest: ImportManifest) -> None:
    """Parts follow each other, each replaces something, and files lie where they should."""
    end = 0
    for part in manifest.parts:
        if part.file != Path(part.file).name or part.file in (MANIFEST_FILE, OUTCOME_FILE, "", ".", ".."):
            raise MalformedFile(f"{file}: '{part.file}' is no name of a file beside it")
        if not end <= part.base_offset < part.end_offset or part.size_bytes < 0:
            raise MalformedFile(f"{file}: the part at offset {part.base_offset} has its place before {end}")
        if not part.replaced or part.replaced[0].base_offset != part.base_offset:
            raise MalformedFile(
                f"{file}: the part at offset {part.base_offset} begins where nothing does that it replaces"
            )
        end = part.end_offset
    if not manifest.parts:
        raise MalformedFile(f"{file}: nothing is handed over")


def _to_json(manifest: ImportManifest) -> bytes:
    parts = [
        {
            **part._asdict(),
            "replaced": [each._asdict() for each in part.replaced],
            "aborted": [list(each) for each in part.aborted],
        }
        for part in manifest.parts
    ]
    found = {
        "version": _VERSION,
        "topic_id": uuid_to_text(manifest.topic_id),
        "first_dirty_offset": manifest.first_dirty_offset,
        "parts": parts,
    }
    return json.dumps(found).encode()
