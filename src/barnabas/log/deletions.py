"""Directories of deleted logs, renamed for deletion and removed when that is due."""

from pathlib import Path

from barnabas.base import disk
from barnabas.log.files import REMOVAL_RETRY_MS


class Deletions:
    """The deletions of a node. `remove_due` may run in a thread, beside the event loop."""

    def __init__(self) -> None:
        #: (monotonic milliseconds from which the path may be removed, path)
        self._scheduled: list[tuple[int, Path]] = []

    def add(self, path: Path, due_ms: int) -> None:
        """Schedule the removal of a directory that is already renamed for deletion."""
        self._scheduled.append((due_ms, path))

    def remove_due(self, now_ms: int) -> int:
        """Remove the directories whose deletion is due on the monotonic clock; returns how many were removed.

        Those that cannot be removed are retried later. Blocks.
        """
        removed_count = 0
        for entry in [entry for entry in tuple(self._scheduled) if entry[0] <= now_ms]:
            self._scheduled.remove(entry)
            _, path = entry
            disk.remove_directory(path)
            if path.exists():
                self._scheduled.append((now_ms + REMOVAL_RETRY_MS, path))
            else:
                removed_count += 1
        return removed_count
