"""Logs as `barnabas jobs restore` writes them for a broker to import."""

from collections.abc import Sequence
from pathlib import Path

from barnabas.log.imports.restore_manifest import MANIFEST_FILE, RESTORED_DIRECTORY, RestoreManifest
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
    directory = partition_directory / RESTORED_DIRECTORY
    directory.mkdir()
    *first, last = offsets
    (directory / f"{first[0]:020d}.log").write_bytes(b"".join(map(batch, first)))
    (directory / f"{last:020d}.log").write_bytes(batch(last))
    manifest = RestoreManifest(topic_id, offsets[0], last + 1 if end is None else end)
    (directory / MANIFEST_FILE).write_text(manifest.to_json())
    return directory
