"""How a process outside the broker passes compacted segments to it: a directory, a lock and a manifest.

The subdirectory `replacement/` of the log's directory first gets the segment files, with any names, and last, by a
rename, `manifest.json`. The broker ignores it before. The preparing process holds a lock (`flock`) on the log's
directory: if there is no manifest and the lock is free, the process has died, and the broker removes the files. When
the broker is done it writes the result to `outcome.json`, and removes the manifest and all other files.
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
    """A segment of the log as the process read it; the import is only valid while it is unchanged."""

    base_offset: int
    size_bytes: int
    #: Digest of all its headers, which contain the CRCs of the batches.
    digest: str


class ImportedSegment(NamedTuple):
    """A segment to import."""

    file: str
    #: Its base offset in the log, which is that of the first segment in `replaced`.
    base_offset: int
    #: Base offset of the next segment.
    end_offset: int
    size_bytes: int
    #: Digest of its own headers.
    digest: str
    #: The neighbouring segments that it replaces.
    replaced: tuple[Replaced, ...]
    #: The entries of its transaction index.
    aborted: tuple[AbortedTransaction, ...] = ()


class ImportManifest(NamedTuple):
    """The segments to import into one log, ordered by offset."""

    topic_id: bytes
    parts: tuple[ImportedSegment, ...]
    #: From this offset on the process looked for the latest record of each key.
    first_dirty_offset: int = 0


class ImportResult(NamedTuple):
    """The result of an import."""

    imported: bool
    #: Reason for a rejection.
    why: str = ""


def headers_of(fd: int, size_bytes: int) -> Iterator[list[BatchHeader]]:
    """Yield the headers of a file of batches, in blocks; large batch bodies are skipped without reading them.

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
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no whole batch at byte {position}")


class HeaderDigest:
    """Digest of all headers of a segment, in order; segments with equal digests have equal content.

    Leader epochs are left out, because the leader assigns them on append.
    """

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=_DIGEST_BYTES)

    def update(self, headers: Iterable[BatchHeader]) -> None:
        """Add these headers to the digest."""
        pack = BATCH_HEADER.pack
        self._hash.update(
            b"".join([pack(header[0], header[1], NO_LEADER_EPOCH, *header[3:]) for header in headers])
        )

    @property
    def text(self) -> str:
        """The digest as text for a manifest."""
        return self._hash.hexdigest()


def digest_of(path: Path, size_bytes: int) -> str:
    """Return the digest of a file's headers. Blocks.

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
    """The right to prepare an import for the log in `directory`: a lock that ends with its process."""

    def __init__(self, directory: Path) -> None:
        """Acquire the lock, and remove the files of an earlier holder.

        :raises FileNotFoundError: When the log does not exist.
        :raises FileExistsError: When another process holds the lock, or an import is waiting for the broker.
        """
        self.directory = directory
        self.path = directory / REPLACEMENT_DIRECTORY
        self._fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not _lock(self._fd):
                message = "another process is preparing an import for this log"
                raise FileExistsError(errno.EEXIST, message, str(self.path))
            if (self.path / MANIFEST_FILE).exists():
                message = "an import is waiting for the broker"
                raise FileExistsError(errno.EEXIST, message, str(self.path))
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir()
            self._chown_to_log_owner()
        except BaseException:
            os.close(self._fd)
            raise

    def _chown_to_log_owner(self) -> None:
        """Let the broker remove files that root has written for it."""
        owner = self.directory.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.chown(self.path, owner.st_uid, owner.st_gid)

    def publish(self, manifest: ImportManifest) -> None:
        """Publish the import: remove all other files, flush everything, then write the manifest. Blocks."""
        _remove(self.path, {part.file for part in manifest.parts})
        for part in manifest.parts:
            sync_path(self.path / part.file)
        sync_path(self.path)
        sync_path(self.directory)
        write_atomically(self.path / MANIFEST_FILE, _to_json(manifest))

    def outcome(self) -> ImportResult | None:
        """Return the result of the import; None while it waits or is being processed."""
        if (self.path / MANIFEST_FILE).exists():
            return None
        try:
            fields = json.loads((self.path / OUTCOME_FILE).read_text())
        except FileNotFoundError:
            return ImportResult(imported=False, why="the log was deleted, or moved to another directory")
        return ImportResult(bool(fields["imported"]), str(fields["why"]))

    def release(self) -> None:
        """Release the lock; a published import stays, all other files are removed."""
        if not (self.path / MANIFEST_FILE).exists():
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# Importing


def remove_abandoned(directory: Path) -> bool:
    """Remove an import without a manifest whose process has ended; return whether it was removed. Blocks."""
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


def write_result(path: Path, result: ImportResult) -> None:
    """Write the result and remove all other files; the manifest last, because it keeps other processes out. Blocks."""
    with suppress(FileNotFoundError):  # the log has been deleted meanwhile
        _remove(path, {MANIFEST_FILE})
        write_atomically(path / OUTCOME_FILE, json.dumps(result._asdict()).encode(), sync=False)
        (path / MANIFEST_FILE).unlink(missing_ok=True)


def _remove(path: Path, names: Collection[str]) -> None:
    """Remove all files in a directory except those named in `names`."""
    for entry in path.iterdir():
        if entry.name in names:
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)  # another process may still be writing to it
        else:
            entry.unlink()


def read_manifest(path: Path) -> ImportManifest:
    """Read the manifest of the import in the directory `path`. Blocks.

    :raises FileNotFoundError: When it is not published yet, or was removed.
    :raises MalformedFile: When it is not valid.
    """
    file = path / MANIFEST_FILE
    try:
        fields = json.loads(file.read_bytes())
        if fields["version"] != _VERSION:
            raise MalformedFile(f"{file}: unsupported version {fields['version']}; it must be {_VERSION}")
        manifest = ImportManifest(
            uuid_from_text(fields["topic_id"]),
            tuple(map(_part, fields["parts"])),
            int(fields["first_dirty_offset"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedFile(f"{file}: {error!r}") from error
    _check(file, manifest)
    return manifest


def _part(fields: Mapping[str, Any]) -> ImportedSegment:
    replaced = tuple(
        Replaced(int(replaced["base_offset"]), int(replaced["size_bytes"]), str(replaced["digest"]))
        for replaced in fields["replaced"]
    )
    aborted = tuple(AbortedTransaction(*map(int, entry)) for entry in fields["aborted"])
    return ImportedSegment(
        str(fields["file"]),
        int(fields["base_offset"]),
        int(fields["end_offset"]),
        int(fields["size_bytes"]),
        str(fields["digest"]),
        replaced,
        aborted,
    )


def _check(file: Path, manifest: ImportManifest) -> None:
    """Check that segments are in order, that each replaces another one, and that file names are plain names."""
    end = 0
    for part in manifest.parts:
        if part.file != Path(part.file).name or part.file in (MANIFEST_FILE, OUTCOME_FILE, "", ".", ".."):
            raise MalformedFile(f"{file}: '{part.file}' must be the name of a file in the same directory")
        if not end <= part.base_offset < part.end_offset or part.size_bytes < 0:
            raise MalformedFile(
                f"{file}: the segment at offset {part.base_offset} is not in order: the one before ends at {end}"
            )
        if not part.replaced or part.replaced[0].base_offset != part.base_offset:
            raise MalformedFile(
                f"{file}: the segment at offset {part.base_offset} must replace one with the same base offset"
            )
        end = part.end_offset
    if not manifest.parts:
        raise MalformedFile(f"{file}: the import has no segments")


def _to_json(manifest: ImportManifest) -> bytes:
    parts = [
        {
            **part._asdict(),
            "replaced": [replaced._asdict() for replaced in part.replaced],
            "aborted": [list(aborted) for aborted in part.aborted],
        }
        for part in manifest.parts
    ]
    fields = {
        "version": _VERSION,
        "topic_id": uuid_to_text(manifest.topic_id),
        "first_dirty_offset": manifest.first_dirty_offset,
        "parts": parts,
    }
    return json.dumps(fields).encode()
