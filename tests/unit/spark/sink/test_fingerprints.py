from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_barnabas.sink.fingerprints import MULTIPLIER, fingerprint
from pyspark_barnabas.sink.protocol import Fingerprint

ALL_BITS = (1 << 64) - 1

rows = st.lists(
    st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=100)), max_size=12
)


def of(pairs: list[tuple[bytes | None, bytes | None]]) -> Fingerprint:
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    return fingerprint(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))


@given(rows, st.integers())
def test_the_order_of_rows_does_not_matter(pairs: list[tuple[bytes | None, bytes | None]], seed: int) -> None:
    shuffled = list(pairs)
    Random(seed).shuffle(shuffled)
    assert of(shuffled) == of(pairs)


@given(rows, st.integers(0, 12))
def test_fingerprints_of_parts_add_up(pairs: list[tuple[bytes | None, bytes | None]], cut: int) -> None:
    assert of(pairs[:cut]).plus(of(pairs[cut:])) == of(pairs)


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_values_of_up_to_64_bytes_are_distinct(one: bytes, other: bytes) -> None:
    assert (of([(None, one)]) == of([(None, other)])) == (one == other)


def test_each_byte_of_64_matters() -> None:
    value = bytes(range(64))
    changed = [value[:at] + b"\xff" + value[at + 1 :] for at in range(64)]
    assert len({of([(None, each)]).digest for each in [value, *changed]}) == 65


def test_long_values_differ_by_size_beginning_and_end() -> None:
    value = b"x" * 1_000
    others = [value + b"x", b"y" + value[1:], value[:-1] + b"y"]
    assert len({of([(None, each)]).digest for each in [value, *others]}) == 4


def test_key_and_value_are_not_interchangeable() -> None:
    assert of([(b"a", b"b")]) != of([(b"b", b"a")])


def test_a_slice_has_the_fingerprint_of_its_rows() -> None:
    values = pa.array([b"a", b"bb", None, b"ccc"])
    assert fingerprint(None, values[1:]) == fingerprint(None, pa.array([b"bb", None, b"ccc"]))


def slow_hash(value: bytes) -> int:
    """The hash of one value, with Python's integers."""
    digest = 0x9E3779B97F4A7C15 ^ len(value) * MULTIPLIER & ALL_BITS
    spread = len(value) - 8
    positions = [spread * number // 7 for number in range(8)] if spread > 0 else [0]
    for position in positions:
        word = int.from_bytes(value[position : position + 8], "little") * MULTIPLIER & ALL_BITS
        digest = (digest ^ word ^ word >> 47) * MULTIPLIER & ALL_BITS
    return digest


@given(st.lists(st.none() | st.binary(max_size=200), max_size=20), st.integers(0, 3))
def test_the_digest_is_the_sum_of_the_hashes(values: list[bytes | None], start: int) -> None:
    fields = pa.array([*[b"before"] * start, *values], pa.binary())[start:]
    hashes = [slow_hash(value or b"") for value in values]
    assert fingerprint(None, fields) == Fingerprint(len(values), sum(hashes) & ALL_BITS)
