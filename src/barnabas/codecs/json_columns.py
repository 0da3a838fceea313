"""JSON objects as columns, by Arrow's reader of JSON lines.

Arrow reads some texts that are no JSON, and JSON that a reader of single values reads differently. Values in which
that may be so, and those that Arrow does not accept, are left to single reading, which says what is wrong.
"""

import re
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from barnabas.codecs import ReadRows
from barnabas.codecs.binary_column import ValueHeader
from barnabas.codecs.errors import ConversionError
from barnabas.codecs.json_values import DATE, DATE_TIME, JsonType

#: Python's reader refuses objects that are nested more deeply than its stack allows, and Arrow does not.
_BRACKETS_MAX = 500
#: Constants that Arrow takes for numbers.
_CONSTANT = re.compile(rb"[\[:,]\s*-?(NaN|Inf)")
#: Dates and times in the form that Arrow reads.
_DATE_TIME = r"^[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-](0\d|1\d|2[0-3]):[0-5]\d)$"
#: Fewer values are read singly if they are not all good.
_FEW = 1_000
#: Into how many parts values are divided that are not all good.
_PARTS = 4
_BYTES_MAX = 64 << 20

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class JsonColumnReader:
    """Reads values of one schema.

    :param columns: Which are nullable or not, at all depths.
    :param row_type: Of the rows; everything is nullable.
    """

    def __init__(self, columns: pa.Schema, row_type: pa.StructType, header: ValueHeader) -> None:
        self._type = pa.struct(list(columns))
        self._row_type = row_type
        self._header = header
        parsed = _parsed_type(row_type)
        self._parse_options = arrow_json.ParseOptions(
            explicit_schema=pa.schema(list(parsed)),
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        )

    def read(self, values: pa.Array) -> ReadRows | None:
        """Read the values that can be read; None if none can.

        :param values: Binary.
        """
        framed = np.flatnonzero(self._header.bodies(values) >= 0)
        size = len(self._header.content)
        bodies = [value[size:] for value in values.take(pa.array(framed)).to_pylist()]
        selected = np.array([index for index, body in enumerate(bodies) if _is_candidate(body)], np.int64)
        parts = self._parts([bodies[index] for index in selected.tolist()], framed[selected])
        if not parts:
            return None
        rows, positions = zip(*parts, strict=True)
        return ReadRows(pa.concat_arrays(rows), np.concatenate(positions))

    def _parts(self, texts: Sequence[bytes], positions: Integers) -> list[tuple[pa.StructArray, Integers]]:
        """Read texts together, or else in parts, unless they are few."""
        if not texts:
            return []
        if sum(map(len, texts)) <= _BYTES_MAX:
            try:
                return [self._read_together(texts, positions)]
            except (pa.ArrowInvalid, UnicodeDecodeError):
                if len(texts) <= _FEW:
                    return []
        size = -(-len(texts) // _PARTS)
        starts = range(0, len(texts), size)
        return [
            part
            for start in starts
            for part in self._parts(texts[start : start + size], positions[start : start + size])
        ]

    def _read_together(self, texts: Sequence[bytes], positions: Integers) -> tuple[pa.StructArray, Integers]:
        """:raises pa.ArrowInvalid: A text may not be one object with these columns.
        :raises UnicodeDecodeError: A text is not UTF-8.
        """
        lines = b"\n".join(texts)
        lines.decode()  # Arrow does not check strings
        if (b"NaN" in lines or b"Inf" in lines) and _CONSTANT.search(lines):
            raise pa.ArrowInvalid("a text has a constant that is not a number of JSON")
        table = arrow_json.read_json(
            BytesIO(lines),
            arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            self._parse_options,
        )
        if len(table) != len(texts):
            raise pa.ArrowInvalid("a text has more than one object")
        columns = [table.column(index).combine_chunks() for index in range(len(self._row_type))]
        parsed = pa.StructArray.from_arrays(columns, names=table.column_names)
        rows, fits = _converted(parsed, self._type, self._row_type)
        return rows.filter(pa.array(fits)), positions[fits]


def _parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with strings for dates and times, of which JSON Schema allows other forms than Arrow."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _parsed_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_parsed_type(kind.value_type))
    return pa.string() if pa.types.is_temporal(kind) else kind


def _converted(array: pa.Array, wanted: pa.DataType, kind: pa.DataType) -> tuple[pa.Array, Booleans]:
    """Return an array of the type of rows, and which of its values fit.

    :param wanted: The type in which fields are nullable or not.
    """
    if pa.types.is_struct(wanted):
        return _converted_struct(array, wanted, kind)
    if pa.types.is_list(wanted):
        items, fits = _converted(array.values, wanted.value_type, kind.value_type)
        if not wanted.value_field.nullable:
            fits = fits & _is_valid(array.values)
        bad = np.concatenate([[0], np.cumsum(~fits)])
        offsets = array.offsets.to_numpy()
        lists = pa.Array.from_buffers(
            kind, len(array), array.buffers()[:2], array.null_count, array.offset, [items]
        )
        return lists, bad[offsets[1:]] == bad[offsets[:-1]]
    if pa.types.is_date(wanted):
        return _read_each(array, DATE)
    if pa.types.is_timestamp(wanted):
        return _read_times(array)
    return array, np.ones(len(array), bool)


def _converted_struct(
    array: pa.StructArray, wanted: pa.StructType, kind: pa.StructType
) -> tuple[pa.Array, Booleans]:
    is_valid, fits = _is_valid(array), np.ones(len(array), bool)
    children = []
    for index, field in enumerate(wanted):
        child, child_fits = _converted(array.field(index), field.type, kind[index].type)
        if not field.nullable:
            child_fits = child_fits & (_is_valid(child) | ~is_valid)
        children.append(child)
        fits &= child_fits
    mask = None if is_valid.all() else pa.array(~is_valid)
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask), fits


def _is_valid(array: pa.Array) -> Booleans:
    found: Booleans = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def _is_candidate(body: bytes) -> bool:
    """Whether both readers read a text equally if Arrow reads it."""
    is_shallow = len(body) <= _BRACKETS_MAX or body.count(b"{") + body.count(b"[") <= _BRACKETS_MAX
    return is_shallow and body.startswith(b"{") and body.endswith(b"}")


def _read_times(array: pa.StringArray) -> tuple[pa.Array, Booleans]:
    if pc.all(pc.match_substring_regex(array, _DATE_TIME)).as_py() is not False:
        try:
            return array.cast(DATE_TIME.type), np.ones(len(array), bool)
        except pa.ArrowInvalid:  # a day or hour that does not exist
            pass
    return _read_each(array, DATE_TIME)


def _read_each(array: pa.StringArray, kind: JsonType) -> tuple[pa.Array, Booleans]:
    """Return texts as dates or times, with null for other texts, and which texts could be read or were null."""
    known: dict[str | None, int | None] = {None: None}
    for text in array.unique().to_pylist():
        known.setdefault(text, _read_or_none(kind.read, text))
    found = [known[text] for text in array.to_pylist()]
    numbers = pa.array(found, pa.int32() if pa.types.is_date(kind.type) else pa.int64())
    return numbers.view(kind.type), _is_valid(numbers) | ~_is_valid(array)


def _read_or_none(read: Callable[[Any], Any], text: str) -> Any:
    try:
        return read(text)
    except ConversionError:
        return None
