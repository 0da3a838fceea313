"""Rectangles with areas proportional to sizes: squarified treemaps (Bruls, Huizing, van Wijk 2000)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 1000.0, 220.0


class Tile(NamedTuple):
    """A rectangle, in units of the picture."""

    name: str
    size: int
    x: float
    y: float
    width: float
    height: float

    @property
    def has_room(self) -> bool:
        """Whether a name fits into it."""
        return self.width > 8.5 * min(len(self.name), 12) and self.height > 34


def treemap(sizes: Mapping[str, int]) -> list[Tile]:
    """Tiles of sizes, the largest first; a size of 0 has no tile."""
    wanted = sorted(((size, name) for name, size in sizes.items() if size > 0), reverse=True)
    width, height = WIDTH, HEIGHT
    scale = width * height / sum(size for size, _ in wanted) if wanted else 0.0
    tiles: list[Tile] = []
    x, y = 0.0, 0.0
    while wanted:
        side = min(width, height)
        row = wanted[: _row_length([size * scale for size, _ in wanted], side)]
        wanted = wanted[len(row) :]
        depth = sum(size for size, _ in row) * scale / side
        along = 0.0
        for size, name in row:
            length = size * scale / depth
            if height <= width:
                tiles.append(_tile(name, size, x, y + along, depth, length))
            else:
                tiles.append(_tile(name, size, x + along, y, length, depth))
            along += length
        if height <= width:
            x, width = x + depth, width - depth
        else:
            y, height = y + depth, height - depth
    return tiles


def _tile(name: str, size: int, *tp: float) -> Tile:
    return Tile(name, size, *(round(each, 2) for each in tp))


def _row_length(areas: Sequence[float], side: float) -> int:
    """How many of the first areas form the row with the least stretched tiles."""
    length = 1
    while length < len(areas) and _worst(areas[: length + 1], side) <= _worst(areas[:length], side):
        length += 1
    return length


def _worst(areas: Sequence[float], side: float) -> float:
    total = sum(areas)
    return max(side**2 * areas[0] / total**2, total**2 / (side**2 * areas[-1]))
