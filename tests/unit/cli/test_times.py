import datetime

import pytest

from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.times import parse_time_ms

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("1767225600000", 1_767_225_600_000),
        ("10m", NOW_MS - 600_000),
        ("2 h ago", NOW_MS - 7_200_000),
        ("250ms", NOW_MS - 250),
        ("1d", NOW_MS - 86_400_000),
        ("99999999d", 0),
        ("2026-01-31T09:30:00Z", 1_769_851_800_000),
        ("2026-01-31T09:30:00.250+01:00", 1_769_848_200_250),
    ],
)
def test_a_time_is_parsed_as_epoch_age_or_date(text: str, expected_ms: int) -> None:
    assert parse_time_ms(text, NOW_MS) == expected_ms


def test_a_date_without_zone_is_local() -> None:
    local = datetime.datetime(2026, 1, 31).astimezone()
    assert parse_time_ms("2026-01-31", NOW_MS) == local.timestamp() * 1000


@pytest.mark.parametrize("text", ["", "yesterday", "10 weeks", "-5m", "2026-13-01"])
def test_an_invalid_time_is_rejected_with_examples(text: str) -> None:
    with pytest.raises(CommandError, match=f"invalid time '{text}'") as raised:
        parse_time_ms(text, NOW_MS)
    assert "10m" in raised.value.hint
