"""Values that are decoded as columns and singly."""

import pyarrow as pa
import pytest

from barnabas.codecs import ColumnReader, ReadRows, ValueDecoder
from barnabas.codecs.columns import _decoded_singly, _numbers, decoded


def check(codec: ValueDecoder, values: pa.Array) -> ReadRows | None:
    """Compare both ways; return what was read as columns."""
    rows, reasons = _decoded_singly(codec, values)
    found_rows, found_reasons = decoded_as_columns(codec, values)
    assert found_rows.type == rows.type
    numbers = _numbers(rows.type)  # Python's times have smaller ranges
    assert repr(found_rows.cast(numbers).to_pylist()) == repr(rows.cast(numbers).to_pylist())
    assert found_reasons.to_pylist() == reasons.to_pylist()
    found_rows.validate(full=True)
    assert isinstance(codec, ColumnReader)
    return codec.read_column(values)


def decoded_as_columns(codec: ValueDecoder, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barnabas.codecs.columns._MANY", 0)
        return decoded(codec, values)
