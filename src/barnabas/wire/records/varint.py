"""Zigzag varints, the integers of records (sint32 and sint64 of protobuf)."""

from barnabas.wire.errors import ErrorCode, KafkaError

_VARINT_BITS_MAX = 64


def read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the signed number at `position` and its end position.

    :raises IndexError: When the buffer ends within the number.
    :raises KafkaError: CORRUPT_MESSAGE when the number is longer than 64 bits.
    """
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    number, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift >= _VARINT_BITS_MAX:
            message = f"a variable-length number at byte {position} is longer than 64 bits"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
        byte = buffer[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), position


def write_varint(output: bytearray, number: int) -> None:
    """Append a signed number of at most 64 bits."""
    number = (number << 1) ^ (number >> 63)
    while number >= 0x80:
        output.append(number & 0x7F | 0x80)
        number >>= 7
    output.append(number)
