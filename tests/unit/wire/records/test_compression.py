import struct
from collections.abc import Iterator
from contextlib import contextmanager

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression, compress, decompress

PACKING = [codec for codec in Compression if codec is not Compression.NONE]


@contextmanager
def corrupt_at_worst() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise


@given(codec=st.sampled_from(Compression), data=st.binary(max_size=2_000), times=st.sampled_from([1, 200]))
def test_compressed_data_round_trips(codec: Compression, data: bytes, times: int) -> None:
    plain = data * times
    assert decompress(codec, compress(codec, plain)) == plain


@given(codec=st.sampled_from(Compression), data=st.binary(max_size=300))
def test_any_bytes_decompress_or_are_corrupt(codec: Compression, data: bytes) -> None:
    with corrupt_at_worst():
        decompress(codec, data)


@given(codec=st.sampled_from(PACKING), flip=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_raises_no_other_error(codec: Compression, flip: int, bit: int) -> None:
    packed = bytearray(compress(codec, b"some text, some text again " * 20))
    packed[flip % len(packed)] ^= 1 << bit
    with corrupt_at_worst():
        decompress(codec, packed)


@pytest.mark.parametrize("codec", PACKING)
def test_decompression_stops_at_the_limit(codec: Compression) -> None:
    packed = compress(codec, bytes(100_001))
    assert decompress(codec, packed, 100_001) == bytes(100_001)
    with pytest.raises(KafkaError) as error:
        decompress(codec, packed, 100_000)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_snappy_is_framed_as_java_frames_it() -> None:
    packed = compress(Compression.SNAPPY, b"a" * 40_000)
    assert packed[:16] == bytes.fromhex("82534e41505059000000000100000001")
    (first_block_bytes,) = struct.unpack_from(">i", packed, 16)
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first_block_bytes]) == 32 * 1024


def test_raw_snappy_of_other_clients_is_accepted() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw" * 50))) == b"raw" * 50


def test_lz4_frames_have_the_independent_blocks_that_java_clients_require() -> None:
    packed = compress(Compression.LZ4, b"a" * 200_000)
    assert packed[:7] == bytes.fromhex("04224d18604082")
    assert packed[4] & 0x20, "block independence"
    assert packed[-4:] == bytes(4)


def test_incompressible_lz4_blocks_are_stored() -> None:
    plain = bytes(range(256))
    packed = compress(Compression.LZ4, plain)
    assert packed == bytes.fromhex("04224d18604082") + struct.pack("<I", 256 | 0x80000000) + plain + bytes(4)


def test_linked_lz4_blocks_of_other_clients_are_accepted() -> None:
    plain = b"linked" * 50_000
    assert decompress(Compression.LZ4, bytes(cramjam.lz4.compress(plain))) == plain


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
def test_a_higher_level_compresses_better(codec: Compression) -> None:
    plain = b"".join(b'{"id": %d, "name": "user %d"}' % (i % 77, i * i % 1003) for i in range(5_000))
    assert len(compress(codec, plain, 9)) < len(compress(codec, plain, 1))


def test_a_snappy_block_longer_than_the_rest_is_corrupt() -> None:
    packed = bytearray(compress(Compression.SNAPPY, b"abc"))
    packed[16:20] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(KafkaError, match="snappy block of 2147483647 bytes"):
        decompress(Compression.SNAPPY, packed)
