"""Warns when a volume with logs has little free space."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.telemetry.logs import get_logger

CHECK_INTERVAL_MS = 10_000
#: A volume is low below the larger of FREE_BYTES_MIN and FREE_SHARE_MIN of its size, but a large volume only below
#: FREE_BYTES_ENOUGH.
FREE_BYTES_MIN = 1 << 30
FREE_SHARE_MIN = 0.05
FREE_BYTES_ENOUGH = 20 << 30
#: Interval of repeated warnings about a volume.
WARN_AGAIN_MS = 60 * 60_000

_log = get_logger("barnabas.log")


class DiskUsage(NamedTuple):
    """Size and free space of a volume, in bytes."""

    total_bytes: int
    free_bytes: int


def is_low(usage: DiskUsage) -> bool:
    """Whether an operator should act."""
    threshold_bytes = max(FREE_BYTES_MIN, usage.total_bytes * FREE_SHARE_MIN)
    return usage.free_bytes < min(threshold_bytes, FREE_BYTES_ENOUGH)


def disk_usage(path: Path) -> DiskUsage:
    """Return the usage of the volume of `path`; space that is reserved for root is not free.

    :raises OSError: If the volume cannot be read.
    """
    total_bytes, _, free_bytes = shutil.disk_usage(path)
    return DiskUsage(total_bytes, free_bytes)


class DiskWatch:
    """Checks the volumes of directories, and warns about each at most once an hour."""

    def __init__(
        self,
        directories: Iterable[Path],
        clock: Clock,
        usage: Callable[[Path], DiskUsage] = disk_usage,
        volume: Callable[[Path], int] = lambda path: os.stat(path).st_dev,
    ) -> None:
        self._directories = list(directories)
        self._clock = clock
        self._usage = usage
        self._volume = volume
        self._warned_ms: dict[int, int] = {}  #: device of a low volume -> time of its last warning

    async def watch(self) -> None:
        """Check each volume in a thread."""
        await asyncio.to_thread(self.check)

    def check(self) -> None:
        """Check each volume. Blocks."""
        volumes: dict[int, Path] = {}
        for path in self._directories:
            try:
                volumes.setdefault(self._volume(path), path)
            except OSError:
                continue  # the log directory goes offline when it is used
        for volume, path in volumes.items():
            self._check_volume(volume, path)

    def _check_volume(self, volume: int, path: Path) -> None:
        try:
            usage = self._usage(path)
        except OSError:
            return
        if not is_low(usage):
            if self._warned_ms.pop(volume, None) is not None:
                _log.info("a volume has enough free space again", path=str(path), free_bytes=usage.free_bytes)
            return
        now_ms = self._clock.monotonic_ms()
        warned_ms = self._warned_ms.get(volume)
        if warned_ms is None or now_ms - warned_ms >= WARN_AGAIN_MS:
            self._warned_ms[volume] = now_ms
            _log.warning(
                "a volume is nearly full; if it is full, its log directories go offline",
                path=str(path),
                free_bytes=usage.free_bytes,
                total_bytes=usage.total_bytes,
                to_do="purge deleted topics ('barnabas topics purge'), shorten retention, or add space",
            )
