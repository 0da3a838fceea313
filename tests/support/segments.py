"""Segment files without a broker."""

from pathlib import Path

from barnabas.log.files import offset_file
from barnabas.wire.records.batch import assign, read_header
from support.batches import batch


def write_segment(
    directory: Path, base_offset: int, *sizes: int, suffix: str = "", tail: bytes = b""
) -> None:
    """Write batches with these record counts, followed by `tail`."""
    offset, data = base_offset, bytearray()
    for size in sizes:
        one = bytearray(batch(*(b"%d" % (offset + index) for index in range(size))))
        assign(one, offset, read_header(one).batch_length, 0)
        data += one
        offset += size
    offset_file(directory, base_offset, ".log" + suffix).write_bytes(bytes(data) + tail)
