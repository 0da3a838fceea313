"""Disks that lose power: what was not flushed may be lost in part.

The files are real. Every change through `barnabas.base.disk` is noted until it is flushed, with what undoes it. When
the power of a node fails, its disk keeps some of the noted changes and loses the others, as file systems may do:

- Of a file's content, changes are kept up to any point; the first lost write may be torn at the end of a
  sector, and the rest be zeros or missing.
- Creations, renames and removals are kept up to any point in the order in which they were made (a journal). Flushing a
  directory keeps all that were made before.
- Content and names are independent, so a file may have its new name and lack its content.

A disk can fail, too: from then on some changes or flushes raise an error, until it is repaired.
"""

import errno
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.base import disk
from barnabas.base.buffers import Buffer
from sim.loop import Trace

SECTOR_BYTES = 512

#: Shares of the first lost write of a file that is torn, and of those whose lost part has become zeros.
_TORN_SHARE = 0.5
_ZEROS_SHARE = 0.5


@dataclass
class _Write:
    """A change of a file's content, and what was there before."""

    position: int
    data: bytes
    before: bytes  #: of the region that was overwritten or cut off
    size_before: int


@dataclass
class _NameChange:
    """A change of directories, and the function that undoes it."""

    directories: tuple[Path, ...]
    undo: Callable[[], None]


@dataclass(frozen=True)
class DiskFailure:
    """How a disk fails: the error of a share of the changes and of the flushes."""

    number: int
    changes_share: float
    flushes_share: float


#: A bad sector, a controller that loses what it should flush, and a full disk.
DISK_FAILURES = (
    DiskFailure(errno.EIO, 0.2, 0.0),
    DiskFailure(errno.EIO, 0.0, 0.5),
    DiskFailure(errno.EIO, 1.0, 1.0),
    DiskFailure(errno.ENOSPC, 1.0, 0.0),
)


@dataclass
class _Unflushed:
    """Changes of one disk that are not flushed."""

    contents: dict[int, list[_Write]] = field(default_factory=dict)  #: by inode
    names: list[_NameChange] = field(default_factory=list)


class SimulatedDisks:
    """One disk for each node: the directory `root/NODE`."""

    def __init__(self, root: Path, rng: random.Random, trace: Trace) -> None:
        self.root = root
        self._prefix_length = len(str(root)) + 1
        self._trace = trace
        trace.root = str(root).encode()
        self._rng = rng
        self._unflushed: dict[str, _Unflushed] = {}
        self._failures: dict[str, DiskFailure] = {}  #: by node
        self.have_failed: dict[str, None] = {}  #: nodes whose disk has failed once
        self._removed = root / ".removed"
        self._removed.mkdir(parents=True)
        self._removed_count = 0
        self.flushes_count = 0
        self.lost_count = 0

    def directory(self, name: str) -> Path:
        """Return the directory of a node's disk."""
        path = self.root / name
        path.mkdir(exist_ok=True)
        return path

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the functions of `barnabas.base.disk`."""
        functions = {
            "write_at": self._write_at,
            "truncate": self._truncate,
            "allocate": self._allocate,
            "open_file": self._open_file,
            "write_file": self._write_file,
            "append_to_file": self._append_to_file,
            "truncate_file": self._truncate_file,
            "rename": self._rename,
            "remove_file": self._remove_file,
            "make_directory": self._make_directory,
            "remove_directory": self._remove_directory,
            "sync_path": self._sync_path,
            "sync_file_system": self._sync_file_system,
        }
        before = {name: getattr(disk, name) for name in functions}
        for name, function in functions.items():
            setattr(disk, name, function)
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(disk, name, function)

    # Failing

    def fail(self, name: str, failure: DiskFailure) -> None:
        """Let a node's disk fail until `repair`."""
        self._failures[name] = failure
        self.have_failed[name] = None

    def repair(self, name: str) -> None:
        self._failures.pop(name, None)

    def flip_bit(self, path: Path) -> None:
        """Change a bit of a file."""
        position = self._rng.randrange(path.stat().st_size * 8)
        with path.open("r+b") as file:
            file.seek(position // 8)
            byte = file.read(1)[0]
            file.seek(position // 8)
            file.write(bytes([byte ^ 1 << position % 8]))

    def _check(self, path: Path | str, *, flushes: bool = False) -> None:
        failure = self._failures.get(self._node_of(path)) if self._failures else None
        if failure is None:
            return
        share = failure.flushes_share if flushes else failure.changes_share
        if self._rng.random() < share:
            raise OSError(failure.number, os.strerror(failure.number), str(path))

    # Losing power

    def lose_power(self, name: str) -> None:
        """Lose changes of a node's disk that were not flushed."""
        unflushed = self._unflushed.pop(name, _Unflushed())
        kept_count = self._rng.randint(0, len(unflushed.names))
        paths = self._inodes(name)
        for inode, writes in unflushed.contents.items():
            if inode in paths:
                self._lose_content(paths[inode], writes)
        for change in reversed(unflushed.names[kept_count:]):
            change.undo()
            self.lost_count += 1

    def _inodes(self, name: str) -> dict[int, Path]:
        found = [*self.root.joinpath(name).rglob("*"), *self._removed.iterdir()]
        return {path.stat().st_ino: path for path in found if path.is_file()}

    def _lose_content(self, path: Path, writes: list[_Write]) -> None:
        kept_count = self._rng.randint(0, len(writes))
        self.lost_count += len(writes) - kept_count
        with path.open("r+b") as file:
            for write in reversed(writes[kept_count:]):
                file.seek(write.position)
                file.write(write.before)
                file.truncate(write.size_before)
            if kept_count < len(writes) and self._rng.random() < _TORN_SHARE:
                torn = writes[kept_count]
                count = self._torn_at(torn)
                rest = bytes(len(torn.data) - count) if self._rng.random() < _ZEROS_SHARE else b""
                file.seek(torn.position)
                file.write(torn.data[:count] + rest)

    def _torn_at(self, write: _Write) -> int:
        """Return how many bytes of a torn write are kept: up to the end of a sector of the file."""
        first = -write.position % SECTOR_BYTES
        return self._rng.choice([0, *range(first, len(write.data), SECTOR_BYTES)])

    # Contents

    def _node_of(self, path: Path | str) -> str:
        return str(path)[self._prefix_length :].partition("/")[0]

    def _note(self, path: Path | str) -> _Unflushed:
        name = self._node_of(path)
        if name not in self._unflushed:
            self._unflushed[name] = _Unflushed()
        return self._unflushed[name]

    def _note_write(self, fd: int, position: int, data: bytes, cut_to: int | None = None) -> None:
        status = os.fstat(fd)
        path = os.readlink(f"/proc/self/fd/{fd}")
        self._check(path)
        if cut_to is not None:
            before = os.pread(fd, max(status.st_size - cut_to, 0), cut_to)
            write = _Write(cut_to, b"", before, status.st_size)
        else:
            before = os.pread(fd, len(data), position)
            write = _Write(position, data, before, status.st_size)
        self._trace.add(f"write {os.path.basename(path)} {write.position}", data)
        self._note(path).contents.setdefault(status.st_ino, []).append(write)

    def _write_at(self, fd: int, data: Buffer, position: int) -> int:
        self._note_write(fd, position, bytes(data))
        return os.pwrite(fd, data, position)

    def _truncate(self, fd: int, size_bytes: int) -> None:
        self._note_write(fd, 0, b"", cut_to=size_bytes)
        os.ftruncate(fd, size_bytes)

    def _allocate(self, fd: int, size_bytes: int) -> None:
        self._note_write(fd, 0, b"", cut_to=size_bytes)
        os.posix_fallocate(fd, 0, size_bytes)

    def _open_file(self, path: Path) -> int:
        is_new = not path.exists()
        if is_new:
            self._check(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if is_new:
            self._note_creation(path)
        return fd

    def _write_file(self, path: Path, data: Buffer, *, sync: bool = False) -> None:
        fd = self._open_file(path)
        try:
            self._truncate(fd, 0)
            self._write_at(fd, data, 0)
            if sync:
                self._flush(fd)
        finally:
            os.close(fd)

    def _append_to_file(self, path: Path, data: Buffer) -> None:
        fd = self._open_file(path)
        try:
            self._write_at(fd, data, os.fstat(fd).st_size)
        finally:
            os.close(fd)

    def _truncate_file(self, path: Path, size_bytes: int) -> None:
        fd = os.open(path, os.O_RDWR)
        try:
            self._truncate(fd, size_bytes)
        finally:
            os.close(fd)

    # Names

    def _note_creation(self, path: Path) -> None:
        def undo() -> None:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

        self._note(path).names.append(_NameChange((path.parent,), undo))

    def _set_aside(self, path: Path) -> Path:
        """Keep what a change removes, in case that the change is lost."""
        self._removed_count += 1
        return path.rename(self._removed / f"{self._removed_count:08d}")

    def _rename(self, path: Path, target: Path) -> Path:
        self._check(path)
        aside = self._set_aside(target) if target.is_file() else None
        path.replace(target)

        def undo() -> None:
            target.replace(path)
            if aside is not None:
                aside.replace(target)

        self._trace.add(f"rename {path.name} {target.name}", b"")
        self._note(path).names.append(_NameChange((path.parent, target.parent), undo))
        return target

    def _remove_file(self, path: Path) -> None:
        if not path.exists():
            return
        self._check(path)
        aside = self._set_aside(path)
        self._note(path).names.append(_NameChange((path.parent,), lambda: _ignore(aside.replace(path))))

    def _make_directory(self, path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
        is_new = not path.exists()
        self._check(path)
        path.mkdir(parents=parents, exist_ok=exist_ok)
        if is_new:
            self._note_creation(path)

    def _remove_directory(self, path: Path) -> None:
        if not path.exists():
            return
        aside = self._set_aside(path)
        self._note(path).names.append(_NameChange((path.parent,), lambda: _ignore(aside.replace(path))))

    # Flushing

    def _flush(self, fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        self._check(path, flushes=True)
        self.flushes_count += 1
        self._note(path).contents.pop(os.fstat(fd).st_ino, None)

    def _sync_path(self, path: Path) -> None:
        try:
            status = path.stat()
        except FileNotFoundError:
            return
        self._check(path, flushes=True)
        self.flushes_count += 1
        self._trace.add(f"sync {path.name}", b"")
        note = self._note(path)
        if stat.S_ISREG(status.st_mode):
            note.contents.pop(status.st_ino, None)
            return
        for index in range(len(note.names) - 1, -1, -1):
            if path in note.names[index].directories:
                del note.names[: index + 1]  # the journal up to this change
                return

    def _sync_file_system(self, path: Path) -> bool:
        self._check(path, flushes=True)
        self.flushes_count += 1
        note = self._note(path)
        note.contents.clear()
        note.names.clear()
        return True


def _ignore(_: object) -> None:
    """Make a function return None."""
