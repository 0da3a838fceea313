"""Closed enums, as those of proto2: Protobuf takes a number that the schema does not know for an unknown field.

So it would be missing in the row, or in a list, without a word.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

_VARINT, _BYTES = 0, 2


class UnknownNumber(NamedTuple):
    """A number that an enum does not have."""

    enum: Any  #: its descriptor
    number: int


class ClosedEnums:
    """The fields of a message with closed enums."""

    def __init__(self, descriptor: Any) -> None:
        """:param descriptor: Of the message."""
        self._fields = {field.number: field for field in descriptor.fields if _is_closed(field)}
        self._maps = {
            field.number: field.message_type for field in descriptor.fields if _has_closed_values(field)
        }

    def __bool__(self) -> bool:
        return bool(self._fields or self._maps)

    def unknown(self, message: Any) -> Iterator[UnknownNumber]:
        """Yield the numbers that are missing in a message. A field with a later number that is known has a value."""
        for unknown in UnknownFieldSet(message):
            number, wire_type = unknown.field_number, unknown.wire_type
            if number in self._fields and wire_type == _VARINT:
                field = self._fields[number]
                if field.is_repeated or not message.HasField(field.name):
                    yield UnknownNumber(field.enum_type, _signed(unknown.data))
            elif number in self._maps and wire_type == _BYTES:
                entry = GetMessageClass(self._maps[number])()
                entry.ParseFromString(unknown.data)
                yield from ClosedEnums(self._maps[number]).unknown(entry)


def _is_closed(field: Any) -> bool:
    return field.enum_type is not None and field.enum_type.is_closed


def _has_closed_values(field: Any) -> bool:
    entry = field.message_type
    return entry is not None and entry.GetOptions().map_entry and _is_closed(entry.fields_by_name["value"])


def _signed(number: int) -> int:
    """Return the 32 bits of an enum as a number."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)
