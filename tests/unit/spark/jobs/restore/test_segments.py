"""Segments of restored partitions contain their rows, offset by offset."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.log.import_manifest import ImportManifest, read_import_manifest
from barnabas.reading.rows import arrow_schema_of, read_arrow
from barnabas.wire.records.batch import crc_matches, iterate_headers
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import decode_batch
from pyspark_barnabas.jobs.restore.segments import SegmentsWriter, encode_rows

COLUMNS = ("offset", "timestamp", "timestampType", "key", "value", "headers")
SCHEMA = arrow_schema_of(COLUMNS)
TIME_MS = 1_700_000_000_000
FAR = 3_000_000_000


def rows_of(offsets: list[int], types: list[int]) -> pa.RecordBatch:
    """Return rows with fields that are present, empty and null, and LogAppendTime for every third."""
    rows: list[dict[str, Any]] = [
        {
            "offset": offset,
            "timestamp": (TIME_MS + (index // 3 if kind else 7 * index % 11)) * 1_000,
            "timestampType": kind,
            "key": (None, b"", b"key")[index % 3],
            "value": (b"%d" % offset, b"", None)[index % 5 % 3],
            "headers": ([{"key": "a", "value": None}, {"key": "a", "value": b"b"}], None)[index % 2],
        }
        for index, (offset, kind) in enumerate(zip(offsets, types, strict=True))
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def written(directory: Path, manifest: ImportManifest, rows: pa.RecordBatch, **options: Any) -> list[bytes]:
    """Write the segments in two steps."""
    half = len(rows) // 2
    with SegmentsWriter(directory, manifest, **options) as writer:
        for part in (rows.slice(0, half), rows.slice(half)):
            for batch in encode_rows(part, Compression.ZSTD):
                writer.write(batch)
        writer.finish()
    assert writer.records_count == len(rows)
    assert read_import_manifest(directory) == manifest
    return [path.read_bytes() for path in sorted(directory.glob("*.log"))]


steps = st.lists(st.tuples(st.sampled_from([1, 1, 1, 1, 2, 50, FAR]), st.integers(1, 70)), max_size=8)


@given(steps, st.lists(st.integers(0, 1), min_size=1, max_size=4), st.integers(0, 1_000), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_rows_round_trip_through_segments(
    tmp_path_factory: pytest.TempPathFactory,
    jumps: list[tuple[int, int]],
    kinds: list[int],
    start: int,
    tail: int,
) -> None:
    offsets, offset = [], start
    for step, count in jumps:
        offsets += list(range(offset + step - 1, offset + step - 1 + count))
        offset = offsets[-1] + 1
    types = [kinds[index * len(kinds) // len(offsets)] for index in range(len(offsets))]
    rows = rows_of(offsets, types)
    end = offset + tail
    segments = written(
        tmp_path_factory.mktemp("log") / "restored", ImportManifest(bytes(16), start, end), rows
    )
    expected = start
    for segment in segments:
        for position, header in iterate_headers(segment):
            assert crc_matches(segment, position, header)
            assert header.base_offset == expected, "there is no gap between batches"
            expected = header.next_offset
    assert expected == end
    found = [
        row
        for segment in segments
        for batch in read_arrow(segment, "t", 0, start, end, COLUMNS)
        for row in batch.to_pylist()
    ]
    assert found == rows.to_pylist()


def test_segments_are_named_after_their_first_offsets_and_limited_in_size(tmp_path: Path) -> None:
    offsets = list(range(10, 5_010))
    rows = rows_of(offsets, [1] * len(offsets))  # a batch for three rows
    manifest = ImportManifest(bytes(16), 4, 5_010)
    segments = written(tmp_path / "restored", manifest, rows, segment_bytes=50_000)
    names = sorted(path.name for path in (tmp_path / "restored").glob("*.log"))
    assert names[0] == "00000000000000000004.log"
    assert len(segments) > 3
    assert all(len(each) <= 50_000 for each in segments)
    for name, segment in list(zip(names, segments, strict=True))[1:]:
        [first, *_] = iterate_headers(segment)
        assert int(name[:20]) == first[1].base_offset


def test_gaps_of_compaction_share_batches(tmp_path: Path) -> None:
    offsets = list(range(0, 30_000, 3))
    rows = rows_of(offsets, [0] * len(offsets))
    [segment] = written(tmp_path / "restored", ImportManifest(bytes(16), 0, offsets[-1] + 1), rows)
    assert len(list(iterate_headers(segment))) <= 20


def test_a_partition_without_records_has_an_empty_batch_or_an_empty_segment(tmp_path: Path) -> None:
    nothing = rows_of([], [])
    [segment] = written(tmp_path / "a", ImportManifest(bytes(16), 5, 9), nothing)
    [(position, header)] = iterate_headers(segment)
    assert (header.base_offset, header.next_offset, header.records_count) == (5, 9, 0)
    assert decode_batch(segment, position, header) == []
    assert written(tmp_path / "b", ImportManifest(bytes(16), 7, 7), nothing) == [b""]
    far = written(tmp_path / "c", ImportManifest(bytes(16), 0, FAR), nothing)
    assert [header.next_offset for each in far for _, header in iterate_headers(each)] == [1 << 31, FAR]
