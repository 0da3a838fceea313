"""Logs as `barnabas jobs restore` writes them for a broker to import."""

from collections.abc import Sequence
from pathlib import Path

from barnabas.log.import_manifest import IMPORT_DIRECTORY, MANIFEST_FILE, ImportManifest
from barnabas.wire.records.record import Record, encode_batch

TIME_MS = 1_700_000_000_000


def batch(offset: int) -> bytes:
    record = Record(offset, TIME_MS + offset % 10, b"key", b"%d" % offset, (("name", None),))
    return bytes(
        encode_batch([record], base_offset=offset, leader_epoch=0, keep_offsets=True, log_append_time=True)
    )


def write_restored_log(
    partition_directory: Path, topic_id: bytes, offsets: Sequence[int], end: int | None = None
) -> Path:
    """Write a record at each offset, the last of them in a segment of its own."""
    directory = partition_directory / IMPORT_DIRECTORY
    directory.mkdir()
    *first, last = offsets
    (directory / f"{first[0]:020d}.log").write_bytes(b"".join(map(batch, first)))
    (directory / f"{last:020d}.log").write_bytes(batch(last))
    manifest = ImportManifest(topic_id, offsets[0], last + 1 if end is None else end)
    (directory / MANIFEST_FILE).write_text(manifest.to_json())
    return directory
