"""Any appended batch can be read, and batches that cannot be read are rejected."""

import struct
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log import validation
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.record_validation import InvalidRecords
from barnabas.log.validation import ValidatedBatch, is_costly, validate, validate_inline
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import walk as compiled
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, crc_matches, read_header, seal
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.record import (
    RECORD_HEADERS_COUNT_MAX,
    Record,
    batch_body,
    decode_batch,
    decode_records,
    encode_batch,
)
from support.malformed import NOW_MS, batch_of, record_with_headers, with_body
from support.record_bodies import Body, bodies, largest_timestamp_ms, read_records, refusable

OpenLog = Callable[..., PartitionLog]
MakeBatch = Callable[..., memoryview]

CONFIG = LogConfig(max_message_bytes=1 << 24)  # more than any generated batch
COMPACTED = LogConfig(max_message_bytes=1 << 24, cleanup_policy=frozenset({"compact"}))
PACKING = [codec for codec in Compression if codec is not Compression.NONE]


def check(records: memoryview, config: LogConfig = CONFIG) -> ValidatedBatch:
    """Validate in both ways, which must agree unless the inline one returns None."""
    validated = validate(memoryview(bytearray(records)), config, NOW_MS)
    inline = validate_inline(memoryview(bytearray(records)), config, NOW_MS)
    assert inline is None or (tuple(inline.header), inline.records) == (
        tuple(validated.header),
        validated.records,
    )
    return validated


def rejected(records: memoryview, config: LogConfig = CONFIG) -> KafkaError:
    with pytest.raises(KafkaError) as error:
        validate(memoryview(bytearray(records)), config, NOW_MS)
    try:
        assert validate_inline(memoryview(bytearray(records)), config, NOW_MS) is None
    except KafkaError as inline:
        assert (inline.code, inline.message) == (error.value.code, error.value.message)  # noqa: PT017
    return error.value


stamps = st.integers(NOW_MS - 10**9, NOW_MS + 1000)
texts = st.one_of(st.none(), st.binary(max_size=30))
headers = st.lists(st.tuples(st.text(max_size=3), texts), max_size=2).map(tuple)
record_lists = st.lists(st.builds(Record, st.just(0), stamps, texts, texts, headers), min_size=1, max_size=8)


@given(records=record_lists, codec=st.sampled_from(Compression))
def test_a_valid_batch_is_stored_unchanged(records: list[Record], codec: Compression) -> None:
    batch = encode_batch(records, compression=codec)
    validated = check(memoryview(batch))
    assert validated.records == batch
    assert tuple(validated.header) == read_header(batch)


@given(records=record_lists, codec=st.sampled_from(Compression), data=st.data())
def test_a_modified_batch_is_rejected_or_can_be_read(
    records: list[Record], codec: Compression, data: st.DataObject
) -> None:
    batch = encode_batch(records, compression=codec)
    packed = bytearray(batch[BATCH_HEADER_BYTES:])
    position = data.draw(st.integers(0, len(packed) - 1))
    packed[position] ^= data.draw(st.integers(1, 255))
    try:
        validated = check(with_body(batch, bytes(packed)))
    except KafkaError as error:
        assert error.code in (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP)  # noqa: PT017
        return
    decoded = decode_records(validated.records)
    assert len(decoded) == len(records)
    assert read_header(validated.records).max_timestamp == max(record.timestamp_ms for record in decoded)


@given(body=bodies(), codec=st.sampled_from(Compression), config=st.sampled_from([CONFIG, COMPACTED]))
def test_a_batch_is_accepted_only_if_its_records_are_readable_and_valid_for_the_topic(
    body: Body, codec: Compression, config: LogConfig
) -> None:
    batch = body.batch(codec)
    try:
        records = read_records(body)
    except ValueError:
        error = rejected(batch, config)
        assert error.code is ErrorCode.INVALID_RECORD
        assert not isinstance(error, InvalidRecords)
        return
    earliest_ms = NOW_MS - config.message_timestamp_before_max_ms
    latest_ms = NOW_MS + config.message_timestamp_after_max_ms
    invalid_indexes = refusable(records, earliest_ms, latest_ms, needs_keys=config is COMPACTED)
    if invalid_indexes:
        error = rejected(batch, config)
        assert isinstance(error, InvalidRecords)
        assert [index for index, _ in error.record_errors] == invalid_indexes
        return
    validated = check(batch, config)
    assert read_header(validated.records).max_timestamp == largest_timestamp_ms(records)
    assert decode_records(validated.records) == records


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"garbage", "record 0 of 1: a field is truncated"),
        (b"\x0c\0\0\0\1\1\0\0", "there are bytes after the last record"),
        (b"\x0c\0\0\2\1\1\0", "offset delta is not its index"),
        (b"\x0e\0\0\0\1\1\0\0", "its fields are shorter than its length"),
        (b"\x10\0\0\0\1\1\2\1\1", "one of its headers has no key"),
        (b"\x10\0\0\0\1\1\x7e\1\1", "larger than its bytes can hold"),
    ],
)
def test_malformed_records_are_invalid(codec: Compression, body: bytes, message: str) -> None:
    error = rejected(batch_of(codec, body))
    assert error.code is ErrorCode.INVALID_RECORD
    assert message in error.message
    assert not isinstance(error, InvalidRecords)


@pytest.mark.parametrize("codec", PACKING)
def test_bytes_that_the_codec_cannot_unpack_are_invalid(codec: Compression) -> None:
    batch = encode_batch([Record(0, NOW_MS, b"k", b"v" * 100)], compression=codec)
    for packed in (b"", bytes(40), b"garbage", bytes(batch[BATCH_HEADER_BYTES:-1])):
        error = rejected(with_body(batch, packed))
        assert error.code is ErrorCode.INVALID_RECORD
        assert codec.name.lower() in error.message or "record 0 of 1" in error.message


def test_lz4_that_java_clients_do_not_read_is_invalid() -> None:
    batch = encode_batch([Record(0, NOW_MS, b"k", b"v" * 100)], compression=Compression.LZ4)
    body = batch_body(batch, 0, read_header(batch))
    linked = bytes(cramjam.lz4.compress(body))
    halves = compress(Compression.LZ4, body[:50]) + compress(Compression.LZ4, body[50:])
    skipped = b"\x50\x2a\x4d\x18\x60\0\0\0" + bytes(0x60) + compress(Compression.LZ4, body)
    for packed in (linked, halves, skipped, compress(Compression.LZ4, body) + bytes(4)):
        assert rejected(with_body(batch, packed)).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Compression.ZSTD, Compression.GZIP])
def test_concatenated_frames_are_read_if_java_clients_read_them(codec: Compression) -> None:
    batch = encode_batch([Record(0, NOW_MS, b"k", b"v" * 100)], compression=codec)
    body = batch_body(batch, 0, read_header(batch))
    check(with_body(batch, compress(codec, body[:50]) + compress(codec, body[50:])))


def test_snappy_is_read_with_and_without_the_frame_of_java_clients() -> None:
    batch = encode_batch([Record(0, NOW_MS, b"k", b"v" * 100)], compression=Compression.SNAPPY)
    body = batch_body(batch, 0, read_header(batch))
    check(memoryview(batch))
    check(with_body(batch, bytes(cramjam.snappy.compress_raw(body))))


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("claimed_ms", [NOW_MS - 10**6, NOW_MS + 10**6, NOW_MS + 10**12, -1, -5])
def test_a_wrong_largest_timestamp_is_corrected(codec: Compression, claimed_ms: int) -> None:
    batch = encode_batch([Record(0, NOW_MS - delta, None, None) for delta in (5, 3, 9)], compression=codec)
    struct.pack_into(">q", batch, 35, claimed_ms)
    seal(batch, 0)
    header, records = check(memoryview(batch))
    assert header[8] == NOW_MS - 3
    assert tuple(header) == read_header(records)
    assert crc_matches(records, 0, read_header(records))


def test_the_largest_timestamp_of_records_from_before_1970_is_minus_one() -> None:
    header, _ = check(memoryview(encode_batch([Record(0, -7, None, None)])))
    assert header[8] == -1


@pytest.mark.parametrize("codec", PACKING)
def test_records_that_decompress_to_more_than_a_request_may_contain_are_too_large(codec: Compression) -> None:
    config = LogConfig(unpacked_bytes_max=1_000_000)
    error = rejected(batch_of(codec, bytes(1_000_001)), config)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "more than the 1000000 bytes allowed" in error.message
    assert "socket.request.max.bytes" in error.message
    assert rejected(batch_of(codec, bytes(1_000_000)), config).code is ErrorCode.INVALID_RECORD


def test_the_number_of_record_headers_per_batch_is_limited() -> None:
    most = record_with_headers(RECORD_HEADERS_COUNT_MAX)
    assert check(batch_of(Compression.ZSTD, most)).header[12] == 1
    error = rejected(batch_of(Compression.ZSTD, record_with_headers(RECORD_HEADERS_COUNT_MAX + 1)))
    assert error.code is ErrorCode.INVALID_RECORD
    assert f"more than {RECORD_HEADERS_COUNT_MAX} record headers" in error.message


def test_decoding_stored_records_rejects_too_many_headers() -> None:
    batch = batch_of(Compression.ZSTD, record_with_headers(RECORD_HEADERS_COUNT_MAX + 1))
    with pytest.raises(KafkaError, match="record headers"):
        decode_batch(batch, 0, read_header(batch))


def test_malformed_records_are_reported_before_records_that_are_invalid_for_the_topic() -> None:
    keyless, malformed = b"\x0c\0\0\0\1\1\0", b"\x0c\0\0\0\1\1\0"
    error = rejected(batch_of(Compression.NONE, keyless + malformed, 2), COMPACTED)
    assert not isinstance(error, InvalidRecords)
    assert "record 1 of 2: its offset delta" in error.message


def test_a_producers_append_time_is_checked_as_the_timestamp_of_its_records() -> None:
    batch = encode_batch([Record(0, NOW_MS, b"k", None)] * 2, log_append_time=True)
    assert check(memoryview(batch)).header[5] == 0
    struct.pack_into(">q", batch, 35, NOW_MS + 10**9)
    seal(batch, 0)
    error = rejected(memoryview(batch))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


# Batches that are validated in a thread


def test_a_large_batch_is_costly() -> None:
    batch = encode_batch([Record(0, NOW_MS, None, bytes(1 << 20))])
    assert is_costly(batch, CONFIG)
    assert validate_inline(memoryview(batch), CONFIG, NOW_MS) is None
    assert check(memoryview(batch), LogConfig(max_message_bytes=1 << 21)).records == batch


@pytest.mark.parametrize("codec", PACKING)
def test_a_small_batch_that_decompresses_to_a_large_one_is_not_validated_inline(codec: Compression) -> None:
    batch = encode_batch([Record(0, NOW_MS, None, bytes(200_000))] * 2, compression=codec)
    assert codec is Compression.SNAPPY or not is_costly(batch, CONFIG)
    assert validate_inline(memoryview(batch), CONFIG, NOW_MS) is None
    assert check(memoryview(batch)).records == batch


def test_a_batch_to_recompress_is_costly_at_a_smaller_size() -> None:
    batch = encode_batch([Record(0, NOW_MS, None, bytes(20_000))])
    config = LogConfig(compression_type="zstd")
    assert is_costly(batch, CONFIG) is not compiled.COMPILED
    assert is_costly(batch, config)
    packed = encode_batch([Record(0, NOW_MS, None, bytes(20_000))], compression=Compression.LZ4)
    assert not is_costly(packed, config)
    assert validate_inline(memoryview(packed), config, NOW_MS) is None


@pytest.mark.parametrize("records", [b"", b"five!", bytes(30)])
def test_bytes_that_are_not_a_batch_are_not_costly(records: bytes) -> None:
    assert not is_costly(records, CONFIG)
    assert rejected(memoryview(bytearray(records))).code is ErrorCode.INVALID_RECORD


def test_smaller_batches_are_validated_inline_without_the_compiled_walk() -> None:
    assert validation.INLINE_BYTES_MAX[Compression.NONE] == (1 << 20 if compiled.COMPILED else 1 << 14)


# In the log


def test_a_validated_batch_is_appended_unchanged(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    batch = log.validate(make_batch(b"a", b"b"))
    assert log.append_as_leader(batch, 3).last_offset == 1
    [first, second] = decode_records(log.read(0, 1000, 2).data)
    assert (first.value, second.value) == (b"a", b"b")


def test_a_rejected_batch_changes_nothing(open_log: OpenLog) -> None:
    log = open_log()
    before = log.statistics()
    with pytest.raises(KafkaError):
        log.append_as_leader(batch_of(Compression.NONE, b"garbage"), 0)
    assert log.statistics() == before
