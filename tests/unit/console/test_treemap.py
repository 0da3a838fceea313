import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.treemap import HEIGHT, WIDTH, treemap


def test_no_items_have_no_tiles() -> None:
    assert treemap({}) == []
    assert treemap({"empty": 0}) == []


def test_one_item_fills_the_picture() -> None:
    [tile] = treemap({"all": 7})
    assert (tile.x, tile.y, tile.width, tile.height) == (0, 0, WIDTH, HEIGHT)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=25))
def test_areas_are_proportional_to_sizes_and_within_the_picture(sizes: list[int]) -> None:
    tiles = treemap({f"t{index}": size for index, size in enumerate(sizes)})
    assert sorted(tile.size for tile in tiles) == sorted(sizes)
    for tile in tiles:
        share = WIDTH * HEIGHT * tile.size / sum(sizes)
        assert tile.width * tile.height == pytest.approx(share, rel=0.02, abs=WIDTH * 0.02)
        assert tile.x >= 0
        assert tile.y >= 0
        assert tile.x + tile.width <= WIDTH + 0.1
        assert tile.y + tile.height <= HEIGHT + 0.1


def test_tiles_do_not_overlap() -> None:
    tiles = treemap({"a": 6, "b": 6, "c": 4, "d": 3, "e": 2, "f": 2, "g": 1})
    for index, one in enumerate(tiles):
        for other in tiles[index + 1 :]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(across, down) <= 0.02


def test_a_name_is_shown_only_where_it_is_readable() -> None:
    large, small = treemap({"large": 10_000, "small": 1})
    assert (large.has_room, small.has_room) == (True, False)
