"""The instructions by which a kernel reads Avro records of one schema."""

from collections.abc import Iterable, Iterator
from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MICROS_PER_MILLI = 1_000
_INT = -(2**31), 2**31 - 1
_LONG = -(2**63), 2**63 - 1
_MILLIS = _LONG[0] // _MICROS_PER_MILLI + 1, _LONG[1] // _MICROS_PER_MILLI
_MILLIS_TYPES = ("timestamp-millis", "local-timestamp-millis")
_NULLS: tuple[Any, ...] = ("null", {"type": "null"})


class AvroOperation(IntEnum):
    """How the kernel reads a part of a record."""

    NUMBER = 0  #: a varint
    BYTES = auto()  #: behind their length
    FIXED = auto()  #: bytes of a known size
    BITS = auto()  #: a little-endian number of a known size
    DECIMAL = auto()  #: a big-endian number behind its length
    FIXED_DECIMAL = auto()  #: a big-endian number of a known size
    RECORD = auto()  #: what follows
    LIST = auto()
    MAP = auto()  #: a list of keys and values
    NEXT_ITEM = auto()  #: begin the next item of a list or map, or leave it
    UNION = auto()  #: what the target of its branch reads
    JUMP = auto()  #: without reading


class AvroInstruction(NamedTuple):
    """A row of the program. A level is a number of rows: of the records, or of the items of a list or map."""

    operation: AvroOperation
    level: int = -1  #: of its values; -1 for those without any
    null_branch: int = -1  #: of a union with null; -1 for others
    size: int = 0  #: bytes of a value
    branches_count: int = 2  #: of a union
    low: int = _LONG[0]  #: the least number
    high: int = _LONG[1]  #: the greatest number
    inner: int = 0  #: level of the items, list of the item, or first target of a union
    next: int = 0  #: the instruction behind this part, or to jump to


class AvroColumn(NamedTuple):
    """A part of the schema that becomes an Arrow array."""

    type: pa.DataType
    at: int  #: its instruction
    level: int
    parts: tuple["AvroColumn", ...] = ()  #: fields, members, items, or keys and items
    symbols: tuple[str, ...] = ()  #: of an enum
    factor: int = 1  #: from the numbers that are read to those of the column


class AvroTables(NamedTuple):
    """The instructions as the kernel reads them."""

    instructions: npt.NDArray[np.int64]  #: by instruction and field of `AvroInstruction`
    targets: npt.NDArray[np.int64]  #: of the branches of all unions


class AvroProgram(NamedTuple):
    """How records of one schema are read, and which arrays they become."""

    root: AvroColumn
    tables: AvroTables
    levels: npt.NDArray[np.int64]  #: of each instruction
    levels_count: int


def avro_program(schema: Any, row_type: pa.StructType) -> AvroProgram | None:
    """Return the program of a record; None if its values must be read singly.

    :param schema: Expanded.
    :param row_type: Of its rows; everything is nullable.
    """
    builder = _Builder()
    try:
        root = builder.add(schema, row_type, 0)
    except _Unsupported:
        return None
    tables = AvroTables(np.array(builder.instructions, np.int64), np.array(builder.targets, np.int64))
    levels = np.array([instruction.level for instruction in builder.instructions])
    return AvroProgram(root, tables, levels, builder.levels_count)


class _Unsupported(Exception):
    """The kernel has no operation for a type."""


class _Builder:
    def __init__(self) -> None:
        self.instructions: list[AvroInstruction] = []
        self.targets: list[int] = []
        self.levels_count = 1

    def add(self, part: Any, kind: pa.DataType, level: int) -> AvroColumn:
        """Add a part of the schema."""
        if not isinstance(part, list):
            return self._add_type(part, kind, level)
        others = [branch for branch in part if branch not in _NULLS]
        if len(others) > 1:
            return self._add_union(part, kind, level)
        if len(part) != 2:  # a union of one type has a branch, but no null
            raise _Unsupported
        column = self._add_type(others[0], kind, level)
        null_branch = 1 - part.index(others[0])
        self.instructions[column.at] = self.instructions[column.at]._replace(null_branch=null_branch)
        return column

    def _add_type(self, part: Any, kind: pa.DataType, level: int) -> AvroColumn:
        name = part["type"] if isinstance(part, dict) else part
        match name:
            case dict():
                return self._add_type(name, kind, level)
            case "record" | "error":
                at = self._append(AvroInstruction(AvroOperation.RECORD, level))
                parts = [field["type"] for field in part["fields"]]
                inner = [self.add(*pair, level) for pair in zip(parts, _types(kind), strict=True)]
                return self._finished(AvroColumn(kind, at, level, tuple(inner)))
            case "array":
                return self._add_items(AvroOperation.LIST, [(part["items"], kind.value_type)], kind, level)
            case "map":
                items = [("string", kind.key_type), (part["values"], kind.item_type)]
                return self._add_items(AvroOperation.MAP, items, kind, level)
            case str():
                return self._add_value(part, name, kind, level)
        raise _Unsupported

    def _add_items(
        self,
        operation: AvroOperation,
        parts: Iterable[tuple[Any, pa.DataType]],
        kind: pa.DataType,
        level: int,
    ) -> AvroColumn:
        inner_level = self.levels_count
        self.levels_count += 1
        at = self._append(AvroInstruction(operation, level, inner=inner_level))
        item = self._append(AvroInstruction(AvroOperation.NEXT_ITEM, inner=at))
        inner = tuple(self.add(*part, inner_level) for part in parts)
        self._append(AvroInstruction(AvroOperation.JUMP, next=item))
        self._set_next(item)
        return self._finished(AvroColumn(kind, at, level, inner))

    def _add_union(self, part: list[Any], kind: pa.DataType, level: int) -> AvroColumn:
        first = len(self.targets)
        self.targets.extend([0] * len(part))
        union = AvroInstruction(AvroOperation.UNION, level, branches_count=len(part), inner=first)
        at = self._append(union)
        members, inner, jumps = _types(kind), [], []
        for index, branch in enumerate(part):
            if branch in _NULLS:
                self.instructions[at] = union._replace(null_branch=index)
            else:
                self.targets[first + index] = len(self.instructions)
                inner.append(self.add(branch, next(members), level))
                jumps.append(self._append(AvroInstruction(AvroOperation.JUMP)))
        for jump in jumps:
            self._set_next(jump)
        return self._finished(AvroColumn(kind, at, level, tuple(inner)))

    def _add_value(self, part: Any, name: str, kind: pa.DataType, level: int) -> AvroColumn:
        logical = part.get("logicalType") if isinstance(part, dict) else None
        symbols, factor = (), 1
        match name:
            case "int":
                instruction = AvroInstruction(AvroOperation.NUMBER, low=_INT[0], high=_INT[1])
            case "long" if logical in _MILLIS_TYPES:
                instruction, factor = (
                    AvroInstruction(AvroOperation.NUMBER, low=_MILLIS[0], high=_MILLIS[1]),
                    _MICROS_PER_MILLI,
                )
            case "long":
                instruction = AvroInstruction(AvroOperation.NUMBER)
            case "enum":
                symbols = tuple(part["symbols"])
                instruction = AvroInstruction(AvroOperation.NUMBER, low=0, high=len(symbols) - 1)
            case "boolean" | "float" | "double":
                size = {"boolean": 1, "float": 4, "double": 8}[name]
                instruction = AvroInstruction(AvroOperation.BITS, size=size)
            case "bytes" | "fixed" if pa.types.is_decimal(kind):
                operation = AvroOperation.DECIMAL if name == "bytes" else AvroOperation.FIXED_DECIMAL
                most = min(10**kind.precision - 1, _LONG[1])
                instruction = AvroInstruction(operation, low=-most, high=most)
            case "bytes" | "string":
                instruction = AvroInstruction(AvroOperation.BYTES)
            case "fixed" if pa.types.is_binary(kind):
                instruction = AvroInstruction(AvroOperation.FIXED)
            case _:
                raise _Unsupported
        if name == "fixed":
            instruction = instruction._replace(size=part["size"])
        at = self._append(instruction._replace(level=level))
        return self._finished(AvroColumn(kind, at, level, symbols=symbols, factor=factor))

    def _append(self, instruction: AvroInstruction) -> int:
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _finished(self, column: AvroColumn) -> AvroColumn:
        self._set_next(column.at)
        return column

    def _set_next(self, at: int) -> None:
        self.instructions[at] = self.instructions[at]._replace(next=len(self.instructions))


def _types(kind: pa.DataType) -> Iterator[pa.DataType]:
    return (field.type for field in kind)
