import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire import primitives
from barnabas.wire.primitives import SKIPPED_TAGGED_FIELDS_MAX, Truncated

BAD_BYTES = (ValueError, IndexError, struct.error)


def written(write: Callable[..., None], *arguments: object) -> bytes:
    out = bytearray(b"before")
    write(out, *arguments)
    assert out.startswith(b"before")
    return bytes(out[6:])


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\0"),
        (1, b"\x01"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_unsigned_varints_have_seven_bits_per_byte_low_bits_first(value: int, encoded: bytes) -> None:
    assert written(primitives.write_uvarint, value) == encoded
    assert primitives.read_uvarint(b"?" + encoded + b"?", 1) == (value, 1 + len(encoded))


@given(st.integers(0, 2**32 - 1))
def test_every_unsigned_varint_round_trips(value: int) -> None:
    encoded = written(primitives.write_uvarint, value)
    assert primitives.read_uvarint(encoded, 0) == (value, len(encoded))


def test_an_unsigned_varint_of_six_bytes_is_rejected() -> None:
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        primitives.read_uvarint(b"\x80\x80\x80\x80\x80\x01", 0)


@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\xff\xff"])
def test_a_truncated_unsigned_varint_is_rejected(encoded: bytes) -> None:
    with pytest.raises(IndexError):
        primitives.read_uvarint(encoded, 0)


TEXTS = st.text(max_size=300).filter(lambda text: "\ud800" not in text)


@pytest.mark.parametrize("compact", [False, True])
@given(text=st.one_of(st.none(), TEXTS))
def test_strings_round_trip_in_both_forms(compact: bool, text: str | None) -> None:
    encoded = written(primitives.STRING_WRITERS[compact, True], text)
    end = len(encoded)
    for buffer in (encoded, memoryview(bytearray(encoded))):
        assert primitives.STRING_READERS[compact, True](buffer, 0) == (text, end)
    if text is not None:
        assert written(primitives.STRING_WRITERS[compact, False], text) == encoded
        assert primitives.STRING_READERS[compact, False](encoded, 0) == (text, end)


@pytest.mark.parametrize(
    ("compact", "text", "encoded"),
    [
        (False, "ä", b"\x00\x02\xc3\xa4"),
        (False, None, b"\xff\xff"),
        (False, "", b"\0\0"),
        (True, "ä", b"\x03\xc3\xa4"),
        (True, None, b"\0"),
        (True, "", b"\x01"),
        (True, "x" * 127, b"\x80\x01" + b"x" * 127),
    ],
)
def test_strings_are_encoded_as_in_the_protocol_guide(
    compact: bool, text: str | None, encoded: bytes
) -> None:
    assert written(primitives.STRING_WRITERS[compact, True], text) == encoded


@pytest.mark.parametrize("compact", [False, True])
def test_null_is_rejected_for_strings_and_bytes_that_are_not_nullable(compact: bool) -> None:
    with pytest.raises(ValueError, match="null where a string must be"):
        primitives.STRING_READERS[compact, False](b"\0\0" if compact else b"\xff\xff", 0)
    with pytest.raises(ValueError, match="null where a byte string must be"):
        primitives.BYTES_READERS[compact, False](b"\0" if compact else b"\xff\xff\xff\xff", 0)


@pytest.mark.parametrize("compact", [False, True])
@given(text=st.text("aé", min_size=1, max_size=200), data=st.data())
def test_a_truncated_string_is_rejected(compact: bool, text: str, data: st.DataObject) -> None:
    encoded = written(primitives.STRING_WRITERS[compact, False], text)
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    with pytest.raises(BAD_BYTES):
        primitives.STRING_READERS[compact, True](memoryview(cut), 0)


@pytest.mark.parametrize("encoded", [b"\x00\x01\xff", b"\x00\x02\xc3("])
def test_bytes_that_are_not_utf8_are_rejected(encoded: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        primitives.read_string(encoded, 0)


@pytest.mark.parametrize("compact", [False, True])
@given(value=st.one_of(st.none(), st.binary(max_size=300)))
def test_byte_strings_round_trip_in_both_forms(compact: bool, value: bytes | None) -> None:
    write = primitives.write_compact_size if compact else primitives.write_size
    encoded = written(write, None if value is None else len(value)) + (value or b"")
    found, end = primitives.BYTES_READERS[compact, True](encoded + b"rest", 0)
    assert (found, end) == (value, len(encoded))


def test_a_byte_string_is_a_view_of_the_view_that_it_is_read_from() -> None:
    buffer = bytearray(b"\0\0\0\x03abc")
    found, _ = primitives.read_bytes(memoryview(buffer), 0)
    buffer[4:] = b"xyz"
    assert found == b"xyz"


@pytest.mark.parametrize(
    ("read", "encoded"),
    [
        (primitives.read_bytes, b"\0\0\0\x05abcd"),
        (primitives.read_compact_bytes, b"\x06abcd"),
        (primitives.read_string, b"\0\x05abcd"),
        (primitives.read_compact_string, b"\x06abcd"),
    ],
)
def test_an_underflow_error_has_the_missing_number_of_bytes(read: primitives.Reader, encoded: bytes) -> None:
    with pytest.raises(Truncated, match="5 bytes announced, 4 there"):
        read(encoded, 0)


def test_a_compact_string_is_limited_to_a_16_bit_length() -> None:
    longest, too_long = (written(primitives.write_compact_string, "x" * size) for size in (32767, 32768))
    assert primitives.read_compact_string(longest, 0) == ("x" * 32767, len(longest))
    with pytest.raises(ValueError, match="a string of 32768 bytes: 32767 are the most"):
        primitives.read_compact_string(too_long, 0)


@pytest.mark.parametrize("count", [None, 0, 1, 100, 2**20])
def test_array_sizes_round_trip(count: int | None) -> None:
    room = bytes(2**20)
    expected = -1 if count is None else count
    encoded = written(primitives.write_size, count)
    assert primitives.read_size(encoded + room, 0) == (expected, len(encoded))
    encoded = written(primitives.write_compact_size, count)
    assert primitives.read_compact_size(encoded + room, 0) == (expected, len(encoded))


@pytest.mark.parametrize(
    ("read", "encoded"),
    [
        (primitives.read_size, struct.pack(">i", 2**31 - 1) + b"abc"),
        (primitives.read_compact_size, b"\xff\xff\xff\xff\x0fabc"),
    ],
)
def test_more_elements_than_bytes_are_rejected_before_allocation(
    read: Callable[[bytes, int], tuple[int, int]], encoded: bytes
) -> None:
    with pytest.raises(ValueError, match=r"an array of \d+ elements is announced in 3 bytes"):
        read(encoded, 0)


def test_a_uuid_is_sixteen_bytes() -> None:
    buffer = bytearray(range(20))
    found, end = primitives.read_uuid(memoryview(buffer), 2)
    buffer[:] = bytes(20)
    assert (found, end) == (bytes(range(2, 18)), 18)
    with pytest.raises(Truncated):
        primitives.read_uuid(bytes(15), 0)


@given(st.lists(st.tuples(st.integers(0, 1000), st.binary(max_size=200)), max_size=5))
def test_unknown_tagged_fields_are_skipped(fields: list[tuple[int, bytes]]) -> None:
    out = bytearray()
    primitives.write_uvarint(out, len(fields))
    for tag, value in fields:
        primitives.write_uvarint(out, tag)
        primitives.write_uvarint(out, len(value))
        out += value
    assert primitives.skip_tagged_fields(bytes(out) + b"rest", 0) == len(out)


def test_too_many_tagged_fields_are_rejected_without_being_skipped() -> None:
    out = bytearray()
    primitives.write_uvarint(out, SKIPPED_TAGGED_FIELDS_MAX + 1)
    with pytest.raises(ValueError, match="1001 tagged fields are announced: at most 1000"):
        primitives.skip_tagged_fields(bytes(out) + b"\x63\x00" * 1001, 0)


def test_a_truncated_tagged_field_is_rejected() -> None:
    with pytest.raises(Truncated, match="9 bytes announced, 1 there"):
        primitives.skip_tagged_fields(b"\x01\x00\x09x", 0)


@given(st.binary(max_size=30))
def test_any_bytes_raise_only_documented_errors(data: bytes) -> None:
    readers = [
        *primitives.STRING_READERS.values(),
        *primitives.BYTES_READERS.values(),
        primitives.read_uvarint,
        primitives.read_size,
        primitives.read_compact_size,
        primitives.read_uuid,
        lambda buffer, position: (None, primitives.skip_tagged_fields(buffer, position)),
    ]
    for read in readers:
        try:
            _, end = read(memoryview(data), 0)
        except BAD_BYTES:
            continue
        assert 0 < end <= len(data)
