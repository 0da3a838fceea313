from pathlib import Path
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.server import disk_space
from barnabas.server.disk_space import WARN_AGAIN_MS, DiskUsage, DiskWatch, is_low

GIB = 1 << 30


@pytest.mark.parametrize(
    ("total_gib", "free_gib", "low"),
    [
        (10, 0.9, True),
        (10, 1.1, False),
        (100, 4.9, True),
        (100, 5.1, False),
        (10_000, 19, True),
        (10_000, 21, False),  # although only a fifth of a percent
    ],
)
def test_a_volume_is_low_below_a_bounded_share(total_gib: int, free_gib: float, low: bool) -> None:
    assert is_low(DiskUsage(total_gib * GIB, int(free_gib * GIB))) == low


class Log:
    """A fake logger."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append(("warning", event, fields["path"]))

    def info(self, event: str, **fields: Any) -> None:
        self.lines.append(("info", event, fields["path"]))


def test_a_low_volume_is_logged_once_an_hour_and_when_it_has_space_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, clock, free = Log(), ManualClock(0), {"bytes": 0}
    monkeypatch.setattr(disk_space, "_log", log)

    def usage(path: Path) -> DiskUsage:
        return DiskUsage(100 * GIB, free["bytes"])

    watch = DiskWatch([Path("/a"), Path("/b")], clock, usage, volume=lambda path: 7)
    watch.check()
    watch.check()
    assert [level for level, *_ in log.lines] == ["warning"]  # both directories are on one volume
    clock.advance(WARN_AGAIN_MS)
    watch.check()
    free["bytes"] = 50 * GIB
    watch.check()
    watch.check()
    assert [level for level, *_ in log.lines] == ["warning", "warning", "info"]


def test_a_directory_that_cannot_be_read_is_left_to_its_log(tmp_path: Path) -> None:
    DiskWatch([tmp_path / "gone"], ManualClock(0)).check()


def test_the_usage_is_the_volumes(tmp_path: Path) -> None:
    usage = disk_space.disk_usage(tmp_path)
    assert 0 <= usage.free_bytes <= usage.total_bytes
