import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.readers import read_signed_varlong

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.varint import read_varint, write_varint


def encoded(number: int) -> bytes:
    output = bytearray()
    write_varint(output, number)
    return bytes(output)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"),
     (2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ffffffffffffffffff01")],
)  # fmt: skip
def test_numbers_are_zigzag_base_128(number: int, text: str) -> None:
    assert encoded(number).hex() == text


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_numbers_round_trip_at_any_position_and_agree_with_kio(number: int, before: bytes) -> None:
    buffer = before + encoded(number) + b"\xff"
    assert read_varint(buffer, len(before)) == (number, len(buffer) - 1)
    assert read_signed_varlong(buffer, len(before)) == (number, len(buffer) - 1 - len(before))


def test_a_truncated_number_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        read_varint(b"\x80\x80", 0)


def test_a_number_longer_than_64_bits_is_corrupt() -> None:
    with pytest.raises(KafkaError, match="longer than 64 bits") as error:
        read_varint(b"\x80" * 11, 0)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
