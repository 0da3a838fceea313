"""Snapshots (`.snapshot`) of a partition's producer state at an offset: Kafka's ProducerSnapshot message, version 1."""

import os
from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from struct import error as struct_error

from crc32c import crc32c

from barnabas.base import disk
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.files import SNAPSHOT_SUFFIX, offset_file, offset_of, write_atomically
from barnabas.log.producers.producer_state_manager import NO_OFFSET, BatchMetadata, ProducerStateEntry

_VERSION = 1
_HEAD = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
#: The CRC covers everything after it: the count and the entries.
_CRC_END = 6


def write_snapshot(directory: Path, offset: int, entries: Iterable[ProducerStateEntry]) -> Path:
    """Write the producer state before `offset`; not flushed to the disk."""
    rows = [_pack(entry) for entry in entries]
    data = bytearray(_HEAD.pack(_VERSION, 0, len(rows)) + b"".join(rows))
    data[2:_CRC_END] = crc32c(memoryview(data)[_CRC_END:]).to_bytes(4, "big")
    path = offset_file(directory, offset, SNAPSHOT_SUFFIX)
    write_atomically(path, bytes(data), sync=False)
    return path


def _pack(entry: ProducerStateEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        entry.last_sequence,
        last.last_offset if last else NO_OFFSET,
        last.offset_delta if last else 0,
        entry.last_timestamp_ms,
        entry.coordinator_epoch,
        entry.current_txn_start_offset,
    )


def read_snapshot(path: Path) -> list[ProducerStateEntry]:
    """Read the producers from a snapshot file.

    :raises MalformedFile: When version, length or CRC is not valid.
    """
    data = path.read_bytes()
    try:
        version, crc, count = _HEAD.unpack_from(data)
        rows = list(_ENTRY.iter_unpack(data[_HEAD.size :]))
    except struct_error as error:
        raise MalformedFile(f"{path}: {error}") from error
    if version != _VERSION or count != len(rows) or crc32c(data[_CRC_END:]) != crc:
        message = f"{path}: version {version} with {count} producers and CRC {crc} does not match its content"
        raise MalformedFile(message)
    return [_unpack(row) for row in rows]


def _unpack(row: tuple[int, ...]) -> ProducerStateEntry:
    entry = ProducerStateEntry(row[0])
    entry.producer_epoch, last_sequence, last_offset, offset_delta = row[1:5]
    entry.last_timestamp_ms, entry.coordinator_epoch, entry.current_txn_start_offset = row[5:]
    entry.last_offset = last_offset
    if last_offset >= 0:
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, entry.last_timestamp_ms))
    return entry


def snapshot_offsets(directory: Path) -> list[int]:
    """Return the offsets of all snapshots in a directory, ascending."""
    offsets = (offset_of(name) for name in os.listdir(directory) if name.endswith(SNAPSHOT_SUFFIX))
    return sorted(offset for offset in offsets if offset is not None)


def remove_stray_snapshots(directory: Path, base_offsets: Iterable[int]) -> None:
    """Keep the snapshots at base offsets of segments, and the newest one after them, from a clean shutdown."""
    starts = set(base_offsets)
    strays = [offset for offset in snapshot_offsets(directory) if offset not in starts]
    keeps_newest = bool(strays) and strays[-1] > max(starts, default=-1)
    for offset in strays[:-1] if keeps_newest else strays:
        disk.remove_file(offset_file(directory, offset, SNAPSHOT_SUFFIX))
