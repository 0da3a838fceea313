"""Numbers and times as pages display them."""

import pytest

from barnabas.console.formatting import count, duration, moment, percent, plural, prose, rate, size


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "–"),
        (-1, "–"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (1 << 30, "1.0 GiB"),
        (200 << 20, "200 MiB"),
    ],
)
def test_sizes(number: int | None, text: str) -> None:
    assert size(number) == text


def test_numbers() -> None:
    assert [count(None), count(1234567), count(12)] == ["–", "1\u202f234\u202f567", "12"]
    assert [rate(None), rate(0.25), rate(10.0), rate(1234.5)] == ["–", "0.2", "10", "1\u202f234"]
    assert [plural(1, "topic"), plural(0, "topic"), plural(2, "has", "have")] == [
        "1 topic",
        "0 topics",
        "2 have",
    ]


def test_shares_are_rounded_but_not_to_0_or_100_percent() -> None:
    shares = [(0, 0), (0, 7), (1, 3), (1, 100_000), (99_999, 100_000), (5, 5)]
    assert [percent(*each) for each in shares] == ["100", "0", "33.3", "less than 0.1", "99.9", "100"]


def test_times() -> None:
    assert moment(1_767_225_600_007) == "2026-01-01 00:00:00.007"
    assert [moment(None), moment(-1), moment(2**62)] == ["–", "–", str(2**62)]
    assert [duration(5), duration(65_000), duration(90_000_000), duration(3_600_000), duration(None)] == [
        "5 ms",
        "1 min 5 s",
        "1 d 1 h",
        "1 h",
        "–",
    ]


def test_config_documentation_is_without_markup() -> None:
    text = 'Ids<p>See <a href="#x">these</a>:<ul><li><code>a &lt; b</code>,</li><li>not <broker></li></ul>'
    assert prose(text) == "Ids See these: a < b, not <broker>"
    assert prose(None) == ""
