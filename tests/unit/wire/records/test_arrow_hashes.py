import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.producer import partitioner
from barnabas.wire.records.arrow_hashes import murmur2

keys = st.lists(st.none() | st.binary(max_size=40), max_size=20)


@given(keys=keys, start=st.integers(0, 5))
def test_columns_hash_like_single_keys(keys: list[bytes | None], start: int) -> None:
    expected = [partitioner.murmur2(key or b"") for key in keys]
    for kind in (pa.binary(), pa.large_binary()):
        assert murmur2(pa.array([*[b"before"] * start, *keys], kind)[start:]).tolist() == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_hashes_like_its_bytes(kind: pa.DataType) -> None:
    assert murmur2(pa.array(["clé", None], kind)).tolist() == [
        partitioner.murmur2("clé".encode()),
        partitioner.murmur2(b""),
    ]
