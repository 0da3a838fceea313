"""Which leader wrote which offsets (KIP-101): the cache behind truncation and OffsetForLeaderEpoch."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from pathlib import Path

from barnabas.log.files import sync_path
from barnabas.log.startup.checkpoints import MalformedFile, read_checkpoint, write_checkpoint

LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """(epoch, first offset) in ascending order of both, kept in `leader-epoch-checkpoint`.

    The file is replaced on every change, but flushed to the disk only by `flush`: what a crash of the
    machine loses is above the recovery point and found again in the batches.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / LEADER_EPOCH_FILE
        self._entries: list[tuple[int, int]] = []
        for epoch, start_offset in read_checkpoint(self._path, (int, int)):
            self._insert(epoch, start_offset)
        self._unsynced = False

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """All (epoch, first offset)."""
        return tuple(self._entries)

    @property
    def latest(self) -> int | None:
        """The epoch of the last leader that wrote, or None in an empty log."""
        return self._entries[-1][0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that the leader of `epoch` writes from `start_offset` on; known epochs change nothing."""
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
        """The largest known epoch up to `epoch` and where it ended; (-1, -1) when that is unknown."""
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
        """The epoch of the leader that wrote `offset`."""
        following = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[following - 1][0] if following else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or after `end_offset`."""
        keep = bisect_left(self._entries, end_offset, key=_start_offset)
        if keep < len(self._entries):
            del self._entries[keep:]
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that ended at or before `start_offset`; the one that holds it begins there."""
        covered = bisect_right(self._entries, start_offset, key=_start_offset)
        if not covered:
            return
        first = (self._entries[covered - 1][0], start_offset)
        if self._entries[0] != first:
            self._entries[:covered] = [first]
            self._write()

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        """Know what another replica's log knows, and nothing else."""
        self._entries = list(entries)
        self._write()

    def relocate(self, directory: Path) -> None:
        """Follow the log's directory, which has been renamed."""
        self._path = directory / LEADER_EPOCH_FILE

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._write()

    def _write(self) -> None:
        write_checkpoint(self._path, self._entries, sync=False)
        self._unsynced = True

    @property
    def is_synced(self) -> bool:
        """Whether the file is on the disk as it is."""
        return not self._unsynced

    def flush(self) -> None:
        """Put the file on the disk. Blocks; may run in a thread."""
        if self._unsynced:
            self._unsynced = False
            sync_path(self._path)
            sync_path(self._path.parent)


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start_offset(entry: tuple[int, int]) -> int:
    return entry[1]


def open_epochs(directory: Path) -> LeaderEpochs | None:
    """The leader epochs of a log; None, and the file removed, when it is damaged.

    Every batch names its epoch: recovering the whole log finds them all again.
    """
    try:
        return LeaderEpochs(directory)
    except MalformedFile:
        (directory / LEADER_EPOCH_FILE).unlink()
        return None
