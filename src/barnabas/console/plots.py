"""Line plots over time, as points of an SVG that the server draws."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.console import formatting

WIDTH, HEIGHT = 720, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 26
_TICKS_COUNT = 4


class Tick(NamedTuple):
    """A mark on an axis, in the units of the SVG."""

    at: float
    label: str


class Plot(NamedTuple):
    """The values of the plot's template; `summary` describes it in words."""

    line: str
    area: str
    across: Sequence[Tick]
    up: Sequence[Tick]
    last: tuple[float, float]
    summary: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


def plot(samples: Sequence[tuple[int, float]]) -> Plot | None:
    """The plot of values by time (ms since the epoch, ascending); None for fewer than two."""
    if len(samples) < 2:
        return None
    begin_ms, end_ms = samples[0][0], samples[-1][0]
    top = rounded_up(max(value for _, value in samples))

    def plot_point(time_ms: float, value: float) -> tuple[float, float]:
        x = _LEFT + (time_ms - begin_ms) / max(1, end_ms - begin_ms) * (WIDTH - _LEFT - _RIGHT)
        return round(x, 1), round(HEIGHT - _BOTTOM - value / top * (HEIGHT - _BOTTOM - _TOP), 1)

    points = [plot_point(*sample) for sample in samples]
    line = " ".join(f"{x},{y}" for x, y in points)
    floor = HEIGHT - _BOTTOM
    values = [value for _, value in samples]
    return Plot(
        line=line,
        area=f"{points[0][0]},{floor} {line} {points[-1][0]},{floor}",
        across=_across(begin_ms, end_ms, plot_point),
        up=[Tick(plot_point(begin_ms, top * part)[1], formatting.count(top * part)) for part in (0, 0.5, 1)],
        last=points[-1],
        summary=f"{formatting.count(values[-1])} now, between {formatting.count(min(values))} "
        f"and {formatting.count(max(values))} in {formatting.duration(end_ms - begin_ms)}",
    )


def _across(begin_ms: int, end_ms: int, plot_point: object) -> list[Tick]:
    assert callable(plot_point)
    step_ms = (end_ms - begin_ms) / (_TICKS_COUNT - 1)
    times = [begin_ms + step_ms * index for index in range(_TICKS_COUNT)]
    return [Tick(plot_point(time_ms, 0)[0], formatting.moment(round(time_ms))[11:19]) for time_ms in times]


def rounded_up(value: float) -> float:
    """The next of 2, 4, 10, 20, 40, 100 ..., so that its half is a round number, too."""
    scale = 2.0
    while True:
        for factor in (1, 2, 5):
            if value <= scale * factor:
                return scale * factor
        scale *= 10
