"""Cache of leader epochs and their start offsets (KIP-101), for truncation and OffsetForLeaderEpoch."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from pathlib import Path

from barnabas.base import disk
from barnabas.log.checkpoints import MalformedFile, read_checkpoint, write_checkpoint

LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """(epoch, start offset) pairs in ascending order of both, stored in `leader-epoch-checkpoint`.

    The file is replaced on every change, but only `flush` flushes it to the disk: what a machine crash loses is
    above the recovery point, and recovery restores it from the batches, each of which contains its epoch.
    """

    def __init__(self, directory: Path, *, is_damaged: bool = False) -> None:
        """:param is_damaged: Begin without entries, and keep the damaged file until `recovered`."""
        self._path = directory / LEADER_EPOCH_FILE
        self._entries: list[tuple[int, int]] = []
        self.is_damaged = is_damaged  #: every batch must be read, so that all epochs are known again
        if not is_damaged:
            for epoch, start_offset in read_checkpoint(self._path, (int, int)):
                self._insert(epoch, start_offset)
        self._unsynced = False

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """All (epoch, start offset) pairs."""
        return tuple(self._entries)

    @property
    def latest(self) -> int | None:
        """The epoch of the last leader that wrote, or None for an empty log."""
        return self._entries[-1][0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that the leader of `epoch` writes from `start_offset` on; does nothing if `epoch` is the latest."""
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        if self._insert(epoch, start_offset):
            self._write()

    def _insert(self, epoch: int, start_offset: int) -> bool:
        if self._entries and self._entries[-1][0] == epoch and start_offset >= self._entries[-1][1]:
            return False
        while self._entries and (self._entries[-1][0] >= epoch or self._entries[-1][1] >= start_offset):
            self._entries.pop()
        self._entries.append((epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch up to `epoch` and its end offset; (-1, -1) if unknown."""
        if epoch == UNDEFINED_EPOCH or not self._entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._entries[-1][0]:
            return epoch, log_end_offset
        following = bisect_right(self._entries, epoch, key=_epoch)
        if following == len(self._entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        end_offset = self._entries[following][1]
        return (self._entries[following - 1][0] if following else epoch), end_offset

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of the leader that wrote `offset`."""
        following = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[following - 1][0] if following else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that begin at or after `end_offset`."""
        keep = bisect_left(self._entries, end_offset, key=_start_offset)
        if keep < len(self._entries):
            del self._entries[keep:]
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the epochs that ended at or before `start_offset`; the epoch that contains it now begins there."""
        covered = bisect_right(self._entries, start_offset, key=_start_offset)
        if not covered:
            return
        first = (self._entries[covered - 1][0], start_offset)
        if self._entries[0] != first:
            self._entries[:covered] = [first]
            self._write()

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        """Replace all entries by those of another replica's log."""
        self._entries = list(entries)
        self._write()

    def relocate(self, directory: Path) -> None:
        """Use the new path of the log's directory after a rename."""
        self._path = directory / LEADER_EPOCH_FILE

    def clear(self) -> None:
        self._entries.clear()
        self._write()

    def recovered(self) -> None:
        """Replace a damaged file, now that all batches have been read.

        A file with some of the epochs must not survive a machine crash: the next recovery would trust it, and read only
        the batches above the recovery point.
        """
        if self.is_damaged:
            self.is_damaged = False
            self._write()
            self.flush()

    def _write(self) -> None:
        if self.is_damaged:
            return
        write_checkpoint(self._path, self._entries, sync=False)
        self._unsynced = True

    @property
    def is_synced(self) -> bool:
        """Whether the file is flushed to the disk."""
        return not self._unsynced

    def flush(self) -> None:
        """Flush the file to the disk. Blocks; may run in a thread."""
        if self._unsynced:
            self._unsynced = False
            disk.sync_path(self._path)
            disk.sync_path(self._path.parent)


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start_offset(entry: tuple[int, int]) -> int:
    return entry[1]


def open_epochs(directory: Path) -> LeaderEpochs:
    """Open the leader epochs of a log, whose file may be damaged."""
    try:
        return LeaderEpochs(directory)
    except MalformedFile:
        return LeaderEpochs(directory, is_damaged=True)
