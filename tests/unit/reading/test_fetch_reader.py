"""Sizes of fetches."""

import math

from barnabas.reading.fetch_reader import fetch_bytes_for

KIB = 1024


def test_a_long_range_is_read_in_full_fetches() -> None:
    assert fetch_bytes_for(1_000_000, 100.0, 8 * KIB * KIB) == 8 * KIB * KIB
    assert fetch_bytes_for(1, math.inf, 500) == 500


def test_a_short_range_is_read_with_little_more_than_its_estimated_size() -> None:
    assert fetch_bytes_for(10_000, 100.0, 8 * KIB * KIB) == 1_125_000 + 64 * KIB
    assert fetch_bytes_for(1, 0.001, 8 * KIB * KIB) == 64 * KIB
