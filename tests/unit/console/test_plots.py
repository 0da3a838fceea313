import pytest

from barnabas.console.plots import HEIGHT, WIDTH, plot, rounded_up


def test_two_values_are_a_line_from_left_to_right() -> None:
    drawn = plot([(1_000, 0), (61_000, 200)])
    assert drawn is not None
    assert drawn.line == f"{drawn.left}.0,{drawn.bottom}.0 {drawn.right}.0,12.0"
    assert drawn.last == (drawn.right, 12)
    assert [tick.label for tick in drawn.up] == ["0", "100", "200"]
    assert [tick.label for tick in drawn.across] == ["00:00:01", "00:00:21", "00:00:41", "00:01:01"]
    assert drawn.summary == "200 now, between 0 and 200 in 1 min"


def test_fewer_than_two_values_have_no_line() -> None:
    assert plot([]) is None
    assert plot([(1_000, 5)]) is None


def test_a_line_of_zeros_is_at_the_bottom() -> None:
    drawn = plot([(1_000, 0), (2_000, 0), (3_000, 0)])
    assert drawn is not None
    assert {point.split(",")[1] for point in drawn.line.split()} == {f"{drawn.bottom}.0"}


def test_every_point_is_within_the_picture() -> None:
    drawn = plot([(1_000 * index, (index * 7919) % 104_729) for index in range(240)])
    assert drawn is not None
    for point in drawn.line.split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT


@pytest.mark.parametrize(
    ("value", "top"), [(0, 2), (2, 2), (3, 4), (9, 10), (11, 20), (39, 40), (41, 100), (12_345, 20_000)]
)
def test_the_top_of_a_plot_is_a_round_number_with_a_round_half(value: float, top: float) -> None:
    assert rounded_up(value) == top
