"""How much of a log is asked for at once."""

import math

from pyspark_barnabas.source.fetching import fetch_bytes_for

KIB = 1024


def test_a_long_range_is_asked_for_in_whole_fetches() -> None:
    assert fetch_bytes_for(1_000_000, 100.0, 8 * KIB * KIB) == 8 * KIB * KIB
    assert fetch_bytes_for(1, math.inf, 500) == 500


def test_of_a_short_range_not_much_more_is_asked_for_than_it_is_thought_to_take() -> None:
    assert fetch_bytes_for(10_000, 100.0, 8 * KIB * KIB) == 1_125_000 + 64 * KIB
    assert fetch_bytes_for(1, 0.001, 8 * KIB * KIB) == 64 * KIB
