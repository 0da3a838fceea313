from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import crc_matches, read_header, seal
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import (
    Record,
    batch_body,
    decode_all,
    decode_batch,
    decode_records,
    encode_batch,
    recompress,
)

optional_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple)
timestamps = st.integers(0, 4_000_000_000_000)
record_lists = st.lists(
    st.builds(Record, st.just(0), timestamps, optional_bytes, optional_bytes, headers),
    min_size=1,
    max_size=20,
)


@contextmanager
def corrupt_at_worst() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise


def numbered(records: list[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + index) for index, record in enumerate(records)]


@given(records=record_lists, codec=st.sampled_from(Compression), base_offset=st.integers(0, 2**50))
def test_records_round_trip(records: list[Record], codec: Compression, base_offset: int) -> None:
    batch = encode_batch(records, compression=codec, base_offset=base_offset)
    header = read_header(batch)
    assert crc_matches(batch, 0, header)
    assert header.compression is codec
    assert decode_records(batch) == numbered(records, base_offset)


@given(records=record_lists, base_offset=st.integers(0, 2**50))
def test_kio_decodes_the_same_records(records: list[Record], base_offset: int) -> None:
    batch = encode_batch(records, base_offset=base_offset, producer_id=3, producer_epoch=2, base_sequence=1)
    theirs, size_bytes = read_batch(bytes(batch), 0)
    assert size_bytes == len(batch)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (3, 2, 1)
    assert [
        (
            record.offset,
            record.timestamp.timestamp(),
            record.key,
            record.value,
            tuple(((pair.key or b"").decode(), pair.value) for pair in record.headers),
        )
        for record in theirs.records
    ] == [
        record._replace(timestamp_ms=record.timestamp_ms // 1000)  # kio keeps whole seconds
        for record in numbered(records, base_offset)
    ]


@given(
    records=record_lists, cut=st.integers(0, 10_000), flips=st.lists(st.integers(61 * 8, 20_000), max_size=4)
)
def test_damaged_bytes_decode_or_are_corrupt(records: list[Record], cut: int, flips: list[int]) -> None:
    batch = encode_batch(records)
    for flip in flips:
        batch[flip // 8 % len(batch)] ^= 1 << flip % 8
    with corrupt_at_worst():
        decode_records(batch[: len(batch) - cut % 30])


@given(st.binary(max_size=200))
def test_any_body_decodes_or_is_corrupt(body: bytes) -> None:
    batch = encode_batch([Record(0, 0, None, None)])[:61] + body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(KafkaError) as error:
        decode_records(batch)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_several_batches_decode_in_order_without_a_partial_last_one() -> None:
    first = encode_batch([Record(0, 1, b"a", None)], base_offset=5)
    second = encode_batch([Record(0, 2, b"b", None), Record(0, 3, b"c", None)], base_offset=6)
    assert [record.key for record in decode_all(first + second + first[:-1])] == [b"a", b"b", b"c"]
    assert [record.offset for record in decode_all(first + second)] == [5, 6, 7]


def test_a_partial_batch_alone_is_corrupt() -> None:
    with pytest.raises(KafkaError, match="not a whole record batch"):
        decode_records(encode_batch([Record(0, 1, b"a", None)])[:-1])


def test_records_may_keep_their_offsets_after_compaction() -> None:
    records = [Record(10, 5, b"a", b"1"), Record(17, 6, b"b", b"2")]
    batch = encode_batch(records, base_offset=10, keep_offsets=True)
    assert read_header(batch).last_offset_delta == 7
    assert decode_records(batch) == records


def test_attributes_describe_the_batch() -> None:
    batch = encode_batch(
        [Record(0, 1, None, None)],
        compression=Compression.LZ4,
        transactional=True,
        control=True,
        log_append_time=True,
        leader_epoch=4,
    )
    header = read_header(batch)
    assert header.attributes == 0x3B
    assert header.partition_leader_epoch == 4


def test_a_header_name_that_is_not_utf_8_is_decoded_as_in_java() -> None:
    batch = encode_batch([Record(0, 1, None, None, (("ab", b""),))])
    batch[batch.index(b"ab") + 1] = 0xFF
    seal(batch, 0)
    assert decode_records(batch)[0].headers == (("a�", b""),)


@pytest.mark.parametrize("codec", Compression)
def test_recompression_changes_only_the_codec(codec: Compression) -> None:
    records = [Record(7 + index, 50 - index, b"key", b"value" * 40) for index in range(20)]
    batch = encode_batch(records, compression=Compression.GZIP, base_offset=7, producer_id=1, base_sequence=3)
    header = read_header(batch)
    packed = recompress(header, batch_body(batch, 0, header), codec)
    after = read_header(packed)
    assert after.compression is codec
    assert crc_matches(packed, 0, after)
    assert decode_batch(packed, 0, after) == records
    unchanged = header._replace(batch_length=after.batch_length, crc=after.crc, attributes=after.attributes)
    assert after == unchanged


def test_a_record_count_that_exceeds_the_body_is_corrupt() -> None:
    batch = encode_batch([Record(0, 1, None, b"v"), Record(0, 1, None, b"w")])
    for count, why in ((1, "bytes follow the last"), (3, "cut off")):
        batch[57:61] = count.to_bytes(4, "big")
        with pytest.raises(KafkaError, match=why):
            decode_records(batch)
