import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from barnabas.log.checkpoints import MalformedFile
from barnabas.log.producers.producer_snapshot import (
    read_snapshot,
    remove_stray_snapshots,
    snapshot_offsets,
    write_snapshot,
)
from barnabas.log.producers.producer_state_manager import BatchMetadata, ProducerStateEntry


def entry() -> ProducerStateEntry:
    state = ProducerStateEntry(77)
    state.producer_epoch, state.coordinator_epoch = 3, 4
    state.last_timestamp_ms, state.current_txn_start_offset = 1_700, 90
    state.batches.append(BatchMetadata(10, 100, 5, 1_600))
    state.batches.append(BatchMetadata(12, 102, 1, 1_700))
    return state


def test_the_file_is_kafkas_producer_snapshot_version_1(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, 103, [entry()])
    body = struct.pack(">iqhiqiqiq", 1, 77, 3, 12, 102, 1, 1_700, 4, 90)
    assert path.name == "00000000000000000103.snapshot"
    assert path.read_bytes() == struct.pack(">hI", 1, crc32c(body)) + body


def test_the_last_batch_of_each_producer_is_stored(tmp_path: Path) -> None:
    (read,) = read_snapshot(write_snapshot(tmp_path, 103, [entry()]))
    assert list(read.batches) == [BatchMetadata(12, 102, 1, 1_700)]
    assert (read.producer_id, read.producer_epoch, read.coordinator_epoch) == (77, 3, 4)
    assert (read.last_timestamp_ms, read.current_txn_start_offset) == (1_700, 90)


def test_a_producer_without_batches_is_stored(tmp_path: Path) -> None:
    (read,) = read_snapshot(write_snapshot(tmp_path, 1, [ProducerStateEntry(5)]))
    assert (read.producer_id, read.producer_epoch, list(read.batches)) == (5, -1, [])


def test_every_damaged_byte_and_every_truncation_is_detected(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, 103, [entry()])
    data = path.read_bytes()
    damaged = [data[:cut] for cut in range(len(data))]
    damaged += [
        data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :] for position in range(len(data))
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(MalformedFile):
            read_snapshot(path)


def test_snapshots_without_a_segment_are_removed_except_the_newest_after_the_last_segment(
    tmp_path: Path,
) -> None:
    for offset in (0, 5, 10, 12, 20):
        write_snapshot(tmp_path, offset, [])
    (tmp_path / "other.snapshot").touch()
    remove_stray_snapshots(tmp_path, [0, 10])
    assert snapshot_offsets(tmp_path) == [0, 10, 20]
    remove_stray_snapshots(tmp_path, [0, 10, 30])
    assert snapshot_offsets(tmp_path) == [0, 10]
