"""Counts of keys, with and without room for all."""

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from barnabas.reports.usage.key_counts import KeyCounts, count_only

KEYS = st.lists(st.one_of(st.none(), st.binary(max_size=2)), max_size=60)


def array(keys: list[bytes | None]) -> pa.Array:
    return pa.array(keys, pa.binary())


@given(st.lists(KEYS, max_size=6), st.integers(1, 5))
def test_the_most_frequent_keys_come_first_and_equal_ones_in_the_order_of_their_bytes(
    parts: list[list[bytes | None]], keys_count: int
) -> None:
    counts = KeyCounts(waiting_rows_max=20)
    for keys in parts:
        counts.add(array(keys))
    expected = Counter(key for keys in parts for key in keys if key is not None)
    assert counts.top(keys_count) == sorted(expected.items(), key=lambda row: (-row[1], row[0]))[:keys_count]
    assert counts.missed_max == 0


@given(st.lists(KEYS, max_size=10), st.integers(1, 3))
def test_without_room_for_all_no_frequent_key_is_missed(
    parts: list[list[bytes | None]], keys_count: int
) -> None:
    counts = KeyCounts(kept_bytes_max=200, waiting_rows_max=10)
    for keys in parts:
        counts.add(array(keys))
    expected = Counter(key for keys in parts for key in keys if key is not None)
    found = dict(counts.top(len(expected) + 1))
    for key, count in expected.items():
        assert count - counts.missed_max <= found.get(key, 0) <= count
    candidates = counts.candidates(keys_count).to_pylist()
    frequent = [key for key, _ in sorted(expected.items(), key=lambda row: (-row[1], row[0]))[:keys_count]]
    assert all(key in candidates for key in frequent if expected[key] > 2 * counts.missed_max)


def test_a_second_pass_counts_candidates_only() -> None:
    keys = array([b"a", b"b", None, b"a"])
    assert count_only(keys, array([b"a", b"c"])).to_pylist() == [b"a", b"a"]
