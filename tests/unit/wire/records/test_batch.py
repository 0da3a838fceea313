import pytest

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    BATCH_HEADER,
    BatchHeader,
    assign,
    crc_matches,
    iterate_headers,
    read_header,
    stamp_append_time,
)
from barnabas.wire.records.batches_numba import read_last_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, decode_records, encode_batch

# One record (key "k", value "v", timestamp 1000) as Kafka's MemoryRecords.withRecords writes it.
ONE_RECORD = bytes.fromhex(
    "0000000000000000"
    "0000003a"
    "ffffffff"
    "02"
    "00000000"
    "0000"
    "00000000"
    "00000000000003e8"
    "00000000000003e8"
    "ffffffffffffffff"
    "ffff"
    "ffffffff"
    "00000001"
    "10"
    "00"
    "00"
    "00"
    "026b"
    "0276"
    "00"
)


def batch_of(*values: bytes, **options: object) -> bytearray:
    records = [Record(0, 1000 + index, None, value) for index, value in enumerate(values)]
    return encode_batch(records, **options)  # type: ignore[arg-type]


def test_the_header_has_61_bytes_in_the_order_of_the_format() -> None:
    batch = batch_of(b"a", b"b", producer_id=7, producer_epoch=3, base_sequence=5, transactional=True)
    header = read_header(batch)
    assert BATCH_HEADER.size == 61
    assert header == BatchHeader(
        base_offset=0, batch_length=len(batch) - 12, partition_leader_epoch=-1, magic=2, crc=header.crc,
        attributes=0x10, last_offset_delta=1, base_timestamp=1000, max_timestamp=1001, producer_id=7,
        producer_epoch=3, base_sequence=5, records_count=2,
    )  # fmt: skip
    assert header.size_bytes == len(batch)
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert not header.has_delete_horizon
    assert header.has_producer_id


def test_a_batch_equals_the_bytes_of_the_format_except_the_crc() -> None:
    batch = encode_batch([Record(0, 1000, b"k", b"v")])
    assert batch[:17] + bytes(4) + batch[21:] == ONE_RECORD


def test_offsets_result_from_base_and_delta() -> None:
    header = read_header(batch_of(b"a", b"b", b"c", base_offset=100))
    assert (header.last_offset, header.next_offset) == (102, 103)


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(-1, 5, -1), (0, 0, 0), (2**31 - 2, 1, 2**31 - 1), (2**31 - 1, 2, 1)]
)
def test_sequences_wrap_at_2_to_the_31(base: int, delta: int, last: int) -> None:
    header = read_header(batch_of(b"a"))._replace(base_sequence=base, last_offset_delta=delta)
    assert header.last_sequence == last


def test_an_unknown_codec_is_corrupt() -> None:
    header = read_header(batch_of(b"a"))._replace(attributes=5)
    with pytest.raises(KafkaError, match="codec 5") as error:
        _ = header.compression
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_headers_are_returned_in_order_up_to_a_partial_batch() -> None:
    first, second = batch_of(b"a"), batch_of(b"b" * 100, compression=Compression.ZSTD)
    found = list(iterate_headers(first + second + first[:-1]))
    assert [(position, header.size_bytes) for position, header in found] == [
        (0, len(first)),
        (len(first), len(second)),
    ]
    assert [position for position, _ in iterate_headers(first + second, len(first))] == [len(first)]
    assert list(iterate_headers(first + second, 0, len(first) - 1)) == []
    assert list(iterate_headers(b"")) == []


def test_the_last_header_is_that_of_the_last_complete_batch() -> None:
    first, second = batch_of(b"a"), batch_of(b"b" * 100, compression=Compression.ZSTD)
    assert read_last_header(first + second + first[:-1]) == read_header(second)
    assert read_last_header(first + second[:-1]) == read_header(first)
    assert read_last_header(first + second[:5]) == read_header(first)
    assert read_last_header(first[:-1]) is None
    assert read_last_header(b"") is None


@pytest.mark.parametrize(
    ("position", "damage", "what"), [(8, -1, "length -1 "), (8, 48, "49"), (13, 1, "message format 1")]
)
def test_the_last_header_of_invalid_bytes_is_corrupt(position: int, damage: int, what: str) -> None:
    batch = batch_of(b"a")
    batch[position : position + 4] = damage.to_bytes(4, "big", signed=True)
    with pytest.raises(KafkaError, match=what):
        read_last_header(batch)


@pytest.mark.parametrize("length", [-1, 0, 13])
def test_an_invalid_length_is_corrupt(length: int) -> None:
    batch = batch_of(b"a")
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(KafkaError, match=f"length {length} ") as error:
        list(iterate_headers(batch))
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_length_shorter_than_the_header_is_corrupt() -> None:
    batch = batch_of(b"a")
    batch[8:12] = (48).to_bytes(4, "big")
    with pytest.raises(KafkaError, match="at least 49"):
        list(iterate_headers(batch))


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_another_magic_is_corrupt(magic: int) -> None:
    batch = batch_of(b"a")
    batch[16] = magic
    with pytest.raises(KafkaError, match=f"message format {magic}"):
        list(iterate_headers(batch))


def test_every_flipped_bit_after_the_crc_field_invalidates_the_crc() -> None:
    batch = b"junk" + batch_of(b"payload")
    header = read_header(batch, 4)
    assert crc_matches(batch, 4, header)
    for index in range(4 + 21, len(batch)):
        damaged = bytearray(batch)
        damaged[index] ^= 0x10
        assert not crc_matches(damaged, 4, header)


def test_assigning_offset_and_epoch_keeps_the_crc_valid() -> None:
    batch = bytearray(b"junk") + batch_of(b"a")
    assign(memoryview(batch)[4:], 2**40, len(batch) - 16, 9)
    header = read_header(batch, 4)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 9)
    assert header.size_bytes == len(batch) - 4
    assert crc_matches(batch, 4, header)


def test_log_append_time_applies_to_every_record() -> None:
    batch = batch_of(b"a", b"b")
    header = stamp_append_time(batch, 0, read_header(batch), 5_000)
    assert header == read_header(batch)
    assert header.is_log_append_time
    assert crc_matches(batch, 0, header)
    assert [record.timestamp_ms for record in decode_records(batch)] == [5_000, 5_000]
