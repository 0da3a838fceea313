import pytest

from barnabas.console.times import time_ms

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("10m", NOW_MS - 600_000),
        ("2 h ago", NOW_MS - 7_200_000),
        ("5min", NOW_MS - 300_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01 00:00:05", 5_000),
        ("1970-01-01T01:00:05+01:00", 5_000),
        ("999999999999d", 0),
    ],
)
def test_times_are_dates_in_utc_ages_or_milliseconds(text: str, expected: int) -> None:
    assert time_ms(text, NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1", "2026-13-01", "x" * 40, "٣"])
def test_an_invalid_time_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="Examples: 2026-01-31"):
        time_ms(text, NOW_MS)
