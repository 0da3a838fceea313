"""Schema ids of a column."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.codecs.registered.framed_column import FramedColumn
from barnabas.registry.codecs.framing import framed, unframed

VALUES = st.lists(
    st.none()
    | st.binary(max_size=8)
    | st.builds(framed, st.integers(0, 3) | st.integers(0, 2**32 - 1), st.binary()),
    max_size=12,
)


def id_of(value: bytes | None) -> int | None:
    found = unframed(value)
    return None if found is None or found.schema_id >= 2**31 else found.schema_id


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@given(values=VALUES, start=st.integers(0, 3))
def test_the_ids_are_those_of_the_values(kind: Any, values: list[bytes | None], start: int) -> None:
    column = FramedColumn(pa.array(values, kind).slice(start))
    ids = [id_of(value) for value in values[start:]]
    assert column.schema_ids().equals(pa.array(ids, pa.int32()))
    positions = dict(column.by_id())
    assert list(positions) == sorted({found for found in ids if found is not None})
    for schema_id, selected in positions.items():
        assert selected.tolist() == [index for index, found in enumerate(ids) if found == schema_id]
    missing = [
        index for index, value in enumerate(values[start:]) if value is not None and ids[index] is None
    ]
    assert column.unframed.tolist() == missing


def test_the_byte_after_the_id_may_be_zero_another_or_missing() -> None:
    column = FramedColumn(pa.array([framed(1, b"\0a"), framed(1, b"\2\0"), framed(1, b""), framed(1, b"\0")]))
    [(schema_id, positions)] = column.by_id()
    assert (schema_id, column.begins_with_zero(positions).tolist()) == (1, [True, False, False, True])
