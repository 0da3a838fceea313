import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.records.batch import DELETE_HORIZON_BIT, crc_matches, read_header
from barnabas.wire.records.columns import read_columns
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.filtering import empty_batch, filter_batch
from barnabas.wire.records.record import Record, decode_records, encode_batch

HORIZON_MS = 1_700_000_000_000
NOW_MS = HORIZON_MS - 86_400_000
INT64_MAX = (1 << 63) - 1


def produced(count: int, **options: object) -> bytes:
    records = [Record(0, 1_000 - number, b"k%d" % number, b"v") for number in range(count)]
    return bytes(encode_batch(records, base_offset=100, **options))  # type: ignore[arg-type]


@given(
    kept=st.sets(st.integers(0, 9), min_size=1),
    codec=st.sampled_from(Compression),
    horizon_ms=st.none() | st.integers(0, 2**45),
    log_append_time=st.booleans(),
)
def test_retained_records_are_unchanged(
    kept: set[int], codec: Compression, horizon_ms: int | None, log_append_time: bool
) -> None:
    batch = produced(
        10,
        compression=codec,
        log_append_time=log_append_time,
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
    )
    before, rows = read_header(batch), sorted(kept)
    filtered = filter_batch(read_columns(batch), 0, rows, horizon_ms)
    after, records = read_header(filtered), decode_records(batch)
    assert decode_records(filtered) == [records[row] for row in rows]
    assert crc_matches(filtered, 0, after)
    assert after.compression is codec
    assert (after.base_offset, after.last_offset) == (before.base_offset, before.last_offset)
    assert (after.producer_id, after.producer_epoch, after.last_sequence) == (7, 1, before.last_sequence)
    assert after.delete_horizon_ms == horizon_ms
    assert after.max_timestamp == (1_000 if log_append_time else 1_000 - rows[0])


@given(
    stamps=st.lists(st.integers(-1, INT64_MAX - NOW_MS - 3_600_000), min_size=1, max_size=3),
    earliest=st.booleans(),
    retention_ms=st.integers(0, INT64_MAX - NOW_MS),
)
def test_a_delete_horizon_changes_no_timestamp(stamps: list[int], earliest: bool, retention_ms: int) -> None:
    """Produced timestamps may be up to 2^63 - 1 milliseconds in the past."""
    if earliest:
        stamps = [NOW_MS - INT64_MAX + stamp for stamp in stamps]
    batch = bytes(encode_batch([Record(0, stamp, b"k", None) for stamp in stamps]))
    rows = range(len(stamps))
    filtered = bytes(filter_batch(read_columns(batch), 0, rows, NOW_MS + retention_ms))
    assert list(read_columns(filtered).timestamps_ms) == stamps
    assert decode_records(filtered) == decode_records(batch)
    assert read_header(filtered).delete_horizon_ms in (None, NOW_MS + retention_ms)


def test_a_batch_with_a_timestamp_too_far_from_the_delete_horizon_gets_none() -> None:
    for stamp, horizon_ms in ((HORIZON_MS - INT64_MAX - 1, HORIZON_MS), (HORIZON_MS - INT64_MAX - 2, None)):
        batch = bytes(encode_batch([Record(0, stamp, b"k", None)]))
        assert (
            read_header(filter_batch(read_columns(batch), 0, [0], HORIZON_MS)).delete_horizon_ms == horizon_ms
        )


def test_a_delete_horizon_is_kept_when_more_records_are_removed() -> None:
    first = bytes(filter_batch(read_columns(produced(3)), 0, [0, 1, 2], HORIZON_MS))
    second = filter_batch(read_columns(first), 0, [1])
    assert read_header(second).delete_horizon_ms == HORIZON_MS
    assert decode_records(second) == decode_records(produced(3))[1:2]


@pytest.mark.parametrize("codec", Compression)
def test_an_empty_batch_keeps_only_offsets_and_sequences(codec: Compression) -> None:
    header = read_header(
        produced(3, compression=codec, producer_id=7, producer_epoch=1, base_sequence=5, transactional=True)
    )
    batch = empty_batch(header._replace(attributes=header.attributes | DELETE_HORIZON_BIT))
    empty = read_header(batch)
    assert len(batch) == 61
    assert crc_matches(batch, 0, empty)
    assert (empty.records_count, empty.compression, empty.has_delete_horizon) == (0, Compression.NONE, False)
    assert (empty.base_offset, empty.last_offset, empty.last_sequence) == (100, 102, 7)
    assert (empty.base_timestamp, empty.max_timestamp) == (1_000, 1_000)
    assert empty.is_transactional
    assert decode_records(batch) == []
