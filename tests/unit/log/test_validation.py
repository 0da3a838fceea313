import struct
from collections.abc import Callable

import pytest

from barnabas.base.clock import ManualClock
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.record_validation import RECORD_ERRORS_COUNT_MAX, InvalidRecords
from barnabas.log.validation import RECORDS_COUNT_MAX, AppendOrigin
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import crc_matches, read_header, seal
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, decode_all, encode_batch

OpenLog = Callable[..., PartitionLog]
MakeBatch = Callable[..., memoryview]
HOUR_MS = 3_600_000


def reject(log: PartitionLog, batch: memoryview | bytes | bytearray) -> KafkaError:
    """Append a batch that must be rejected, and check that nothing was appended."""
    before = log.statistics()
    with pytest.raises(KafkaError) as error:
        log.append_as_leader(memoryview(bytearray(batch)), 0)
    assert log.statistics() == before
    return error.value


def patched(batch: memoryview, position: int, value: bytes, *, reseal: bool = True) -> bytearray:
    changed = bytearray(batch)
    changed[position : position + len(value)] = value
    if reseal:
        seal(changed, 0)
    return changed


@pytest.mark.parametrize("length", [0, 5, 16, 40])
def test_bytes_without_a_whole_batch_are_invalid(
    open_log: OpenLog, make_batch: MakeBatch, length: int
) -> None:
    error = reject(open_log(), make_batch(b"a")[:length])
    assert error.code is ErrorCode.INVALID_RECORD
    assert f"{length} bytes hold no whole record batch" in error.message


def test_a_second_batch_is_invalid(open_log: OpenLog, make_batch: MakeBatch) -> None:
    error = reject(open_log(), bytes(make_batch(b"a")) + bytes(make_batch(b"b")))
    assert error.code is ErrorCode.INVALID_RECORD
    assert "more than one record batch" in error.message


def test_a_partial_batch_after_the_first_is_cut_off(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    batch = make_batch(b"a")
    log.append_as_leader(memoryview(bytearray(batch) + bytearray(batch[:-1])), 0)
    assert log.size_bytes == len(batch)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_invalid(open_log: OpenLog, make_batch: MakeBatch, magic: int) -> None:
    error = reject(open_log(), patched(make_batch(b"a"), 16, bytes([magic])))
    assert error.code is ErrorCode.INVALID_RECORD
    assert f"message format {magic}" in error.message


def test_unknown_message_formats_and_impossible_lengths_are_corrupt(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    batch = make_batch(b"a")
    assert reject(open_log(), patched(batch, 16, b"\x03")).code is ErrorCode.CORRUPT_MESSAGE
    assert reject(open_log(), patched(batch, 8, bytes(4), reseal=False)).code is ErrorCode.CORRUPT_MESSAGE


def test_the_base_offset_of_a_produced_batch_is_zero(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    error = reject(log, make_batch(b"a", base_offset=1))
    assert error.code is ErrorCode.INVALID_RECORD
    log.append_as_leader(make_batch(b"a", base_offset=1), 0, AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 1


def test_a_batch_larger_than_the_topic_allows_is_too_large(open_log: OpenLog, make_batch: MakeBatch) -> None:
    batch = make_batch(b"x" * 100)
    error = reject(open_log(max_message_bytes=len(batch) - 1), batch)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert f"max.message.bytes allows {len(batch) - 1}" in error.message
    assert open_log(max_message_bytes=len(batch)).append_as_leader(batch, 0).first_offset == 0


def test_a_batch_larger_than_a_segment_is_rejected(open_log: OpenLog, make_batch: MakeBatch) -> None:
    error = reject(open_log(segment_bytes=100), make_batch(b"x" * 100))
    assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert "segment.bytes allows 100" in error.message


def test_a_flipped_bit_is_corrupt(open_log: OpenLog, make_batch: MakeBatch) -> None:
    batch = make_batch(b"payload")
    error = reject(open_log(), patched(batch, len(batch) - 3, b"X", reseal=False))
    assert error.code is ErrorCode.CORRUPT_MESSAGE


def test_size_is_checked_before_the_crc_and_the_crc_before_the_count(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    batch = patched(make_batch(b"payload"), 57, (9).to_bytes(4, "big"), reseal=False)
    assert reject(open_log(max_message_bytes=60), batch).code is ErrorCode.MESSAGE_TOO_LARGE
    assert reject(open_log(), batch).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("delta", "count"), [(0, 0), (-1, 0), (0, -1), (1, 1), (0, 2), (5, 3)])
def test_count_and_offset_delta_must_agree(
    open_log: OpenLog, make_batch: MakeBatch, delta: int, count: int
) -> None:
    batch = patched(make_batch(b"a"), 57, count.to_bytes(4, "big", signed=True))
    batch = patched(memoryview(batch), 23, delta.to_bytes(4, "big", signed=True))
    error = reject(open_log(), batch)
    assert error.code is ErrorCode.INVALID_RECORD
    assert f"{count} records with a last offset delta of {delta}" in error.message


def test_clients_do_not_write_control_batches(open_log: OpenLog, make_batch: MakeBatch) -> None:
    error = reject(open_log(), make_batch(b"a", control=True))
    assert error.code is ErrorCode.INVALID_RECORD
    assert "control" in error.message


def test_a_producer_id_needs_a_sequence(open_log: OpenLog, make_batch: MakeBatch) -> None:
    error = reject(open_log(), make_batch(b"a", producer_id=5, producer_epoch=0))
    assert error.code is ErrorCode.INVALID_RECORD
    assert "sequence -1 of producer 5" in error.message


def test_an_unknown_codec_is_invalid(open_log: OpenLog, make_batch: MakeBatch) -> None:
    error = reject(open_log(), patched(make_batch(b"a"), 21, b"\x00\x06"))
    assert error.code is ErrorCode.INVALID_RECORD
    assert "codec 6" in error.message


def test_timestamps_too_far_in_the_future_are_reported_for_each_record(
    open_log: OpenLog, clock: ManualClock
) -> None:
    late_ms = clock.now_ms + HOUR_MS + 1
    stamps = [clock.now_ms, late_ms, late_ms - 1, late_ms]
    error = reject(open_log(), encode_batch([Record(0, stamp, None, b"x") for stamp in stamps]))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert str(late_ms) in error.record_errors[0][1]


def test_timestamps_too_far_in_the_past_are_rejected_if_configured(
    open_log: OpenLog, make_batch: MakeBatch, clock: ManualClock
) -> None:
    log = open_log(message_timestamp_before_max_ms=1_000)
    error = reject(log, make_batch(b"a", timestamp_ms=clock.now_ms - 1_001, compression=Compression.LZ4))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    log.append_as_leader(make_batch(b"a", timestamp_ms=clock.now_ms - 1_000), 0)
    log.append_as_leader(make_batch(b"a", timestamp_ms=-1), 0)
    assert log.log_end_offset == 2


def test_a_wrong_largest_timestamp_in_the_header_is_corrected(
    open_log: OpenLog, make_batch: MakeBatch, clock: ManualClock
) -> None:
    log = open_log()
    wrong = patched(make_batch(b"a"), 35, (clock.now_ms + 9 * HOUR_MS).to_bytes(8, "big"))
    log.append_as_leader(memoryview(wrong), 0)
    header = read_header(log.read(0, 1000, 1).data)
    assert header.max_timestamp == clock.now_ms


def test_compacted_topics_reject_records_without_keys(open_log: OpenLog, clock: ManualClock) -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}))
    keys = [b"k", None, b"", None]
    error = reject(log, encode_batch([Record(0, clock.now_ms, key, b"x") for key in keys]))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert "2 of 4 records are not valid: record 1: the record has no key" in error.message
    log.append_as_leader(memoryview(encode_batch([Record(0, clock.now_ms, b"k", None)])), 0)


def test_records_that_cannot_be_decoded_are_invalid_if_validation_reads_them(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    garbage = patched(make_batch(b"aaaa", key=b"k"), 61, b"\x7f")
    assert reject(open_log(cleanup_policy=frozenset({"compact"})), garbage).code is ErrorCode.INVALID_RECORD
    packed = patched(make_batch(b"aaaa", compression=Compression.ZSTD), 61, b"\x00")
    assert reject(open_log(compression_type="lz4"), packed).code is ErrorCode.INVALID_RECORD


def test_append_time_replaces_the_producers_timestamp(
    open_log: OpenLog, make_batch: MakeBatch, clock: ManualClock
) -> None:
    log = open_log(message_timestamp_type="LogAppendTime")
    batch = make_batch(b"a", b"b", timestamp_ms=1, compression=Compression.GZIP)
    info = log.append_as_leader(batch, 0)
    assert info.log_append_time_ms == clock.now_ms
    data = log.read(0, 1000, 2).data
    assert crc_matches(data, 0, read_header(data))
    assert [record.timestamp_ms for record in decode_all(data)] == [clock.now_ms] * 2


@pytest.mark.parametrize("count", [RECORDS_COUNT_MAX + 1, 2**31 - 1])
def test_a_batch_with_too_large_a_record_count_is_invalid(
    open_log: OpenLog, make_batch: MakeBatch, count: int
) -> None:
    batch = patched(make_batch(b"a"), 23, struct.pack(">i", count - 1))
    error = reject(open_log(), patched(memoryview(batch), 57, struct.pack(">i", count)))
    assert error.code is ErrorCode.INVALID_RECORD
    assert f"{count} records in a batch: at most {RECORDS_COUNT_MAX} are allowed" in error.message


def test_the_number_of_reported_record_errors_is_limited(open_log: OpenLog, make_batch: MakeBatch) -> None:
    count = RECORD_ERRORS_COUNT_MAX + 1
    log = open_log(message_timestamp_type="LogAppendTime")
    error = reject(log, make_batch(*[b"a"] * count, log_append_time=True))
    assert isinstance(error, InvalidRecords)
    assert len(error.record_errors) == RECORD_ERRORS_COUNT_MAX
    log = open_log(cleanup_policy=frozenset({"compact"}))
    error = reject(log, make_batch(*[b"a"] * count))
    assert isinstance(error, InvalidRecords)
    assert len(error.record_errors) == RECORD_ERRORS_COUNT_MAX


def test_producers_do_not_set_append_time(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log(message_timestamp_type="LogAppendTime")
    error = reject(log, make_batch(b"a", b"b", log_append_time=True))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


def test_append_time_from_a_producer_becomes_create_time(
    open_log: OpenLog, make_batch: MakeBatch, clock: ManualClock
) -> None:
    log = open_log()
    log.append_as_leader(make_batch(b"a", log_append_time=True), 0)
    header = read_header(log.read(0, 1000, 1).data)
    assert not header.is_log_append_time
    assert header.max_timestamp == clock.now_ms
    error = reject(log, make_batch(b"a", log_append_time=True, timestamp_ms=-1))
    assert error.code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", Compression)
def test_batches_are_recompressed_with_the_topics_codec(
    open_log: OpenLog, clock: ManualClock, name: str, source: Compression
) -> None:
    log = open_log(compression_type=name)
    records = [Record(index, clock.now_ms, b"k%d" % index, b"v" * 50) for index in range(9)]
    log.append_as_leader(memoryview(encode_batch(records, compression=source)), 0)
    data = log.read(0, 10_000, 9).data
    header = read_header(data)
    assert header.compression is log.config.target_codec
    assert crc_matches(data, 0, header)
    assert decode_all(data) == records


def test_a_batch_that_is_too_large_after_decompression_is_rejected(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    log = open_log(compression_type="uncompressed", max_message_bytes=500)
    error = reject(log, make_batch(b"x" * 5_000, compression=Compression.ZSTD))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "as none" in error.message


def test_a_duplicate_batch_returns_the_offsets_of_the_first_append(
    open_log: OpenLog, make_batch: MakeBatch
) -> None:
    log = open_log()
    options = {"producer_id": 5, "producer_epoch": 0}
    log.append_as_leader(make_batch(b"other"), 0)
    first = log.append_as_leader(make_batch(b"a", b"b", base_sequence=0, **options), 0)
    size_bytes = log.size_bytes
    again = log.append_as_leader(make_batch(b"a", b"b", base_sequence=0, **options), 0)
    assert (again.first_offset, again.last_offset, again.duplicate) == (1, 2, True)
    assert not first.duplicate
    assert (log.log_end_offset, log.size_bytes) == (3, size_bytes)
    assert reject(log, make_batch(b"c", base_sequence=3, **options)).code is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_config_changes_apply_to_the_next_batch(open_log: OpenLog, make_batch: MakeBatch) -> None:
    log = open_log()
    log.append_as_leader(make_batch(b"x" * 100), 0)
    log.config = LogConfig(max_message_bytes=100)
    assert reject(log, make_batch(b"x" * 100)).code is ErrorCode.MESSAGE_TOO_LARGE
