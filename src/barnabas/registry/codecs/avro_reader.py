"""Reads Avro's binary encoding as Avro's JSON encoding, in which a value of a union names its branch.

Logical types stay the types below them, as in Confluent's console consumer.
"""

import math
import struct
from typing import Any

from barnabas.registry.avro.model import AvroType
from barnabas.registry.codecs.errors import MalformedValue

#: Values in one datum; arrays of nulls take no bytes, however many there are.
_VALUES_MAX = 1_000_000
_DEPTH_MAX = 200
_LONG_BYTES_MAX = 10


def read_avro(schema: AvroType, data: bytes) -> Any:
    """Return a datum.

    :raises MalformedValue: If it is not one of the schema.
    """
    reader = _Reader(data)
    try:
        value = reader.value(schema)
    except UnicodeDecodeError:
        raise MalformedValue("a text is not UTF-8") from None
    if reader.position != len(data):
        raise MalformedValue(f"{len(data) - reader.position} of its {len(data)} bytes are left over")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self._values_left = _VALUES_MAX
        self._depth = 0

    def value(self, schema: AvroType) -> Any:
        """Read a value of any type."""
        self._values_left -= 1
        if self._values_left < 0:
            raise MalformedValue(f"it has more than {_VALUES_MAX} values")
        match schema.kind:
            case "null":
                return None
            case "boolean":
                return self._bytes(1) != b"\0"
            case "int" | "long":
                return self._long()
            case "float":
                return _number(struct.unpack("<f", self._bytes(4))[0])
            case "double":
                return _number(struct.unpack("<d", self._bytes(8))[0])
            case "bytes":
                return self._bytes(self._length()).decode("latin-1")
            case "string":
                return self._bytes(self._length()).decode()
            case "fixed":
                return self._bytes(schema.size).decode("latin-1")
            case "enum":
                return self._item(schema.symbols, "symbols")
            case _:
                return self._nested(schema)

    def _nested(self, schema: AvroType) -> Any:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise MalformedValue(f"it has more than {_DEPTH_MAX} levels")
        try:
            if schema.kind == "union":
                branch: AvroType = self._item(schema.branches, "branches")
                value = self.value(branch)
                return None if branch.kind == "null" else {branch.full_name: value}
            if schema.kind in ("array", "map"):
                return self._blocks(schema)
            return {field.name: self.value(field.type) for field in schema.fields}
        finally:
            self._depth -= 1

    def _blocks(self, schema: AvroType) -> Any:
        """Read the items of an array or a map, which come in blocks."""
        assert schema.items is not None
        items: list[Any] = []
        pairs: dict[str, Any] = {}
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # the size of the block
            for _ in range(count):
                if schema.kind == "array":
                    items.append(self.value(schema.items))
                else:
                    key = self._bytes(self._length()).decode()
                    pairs[key] = self.value(schema.items)
        return items if schema.kind == "array" else pairs

    def _item(self, items: tuple[Any, ...], what: str) -> Any:
        index = self._long()
        if not 0 <= index < len(items):
            raise MalformedValue(f"it has the index {index}, where there are {len(items)} {what}")
        return items[index]

    def _length(self) -> int:
        length = self._long()
        if length < 0:
            raise MalformedValue(f"it has the length {length}")
        return length

    def _bytes(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._data):
            raise MalformedValue(f"it ends too early, after {len(self._data)} bytes")
        part = self._data[self.position : end]
        self.position = end
        return part

    def _long(self) -> int:
        """Read a zigzag varint."""
        number = 0
        for index in range(_LONG_BYTES_MAX):
            (byte,) = self._bytes(1)
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
        raise MalformedValue("a number has too many bytes")


def _number(value: float) -> float | str:
    """Return a float as JSON can have it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
