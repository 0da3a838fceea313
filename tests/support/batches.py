"""Record batches as producers send them."""

from typing import Any

from barnabas.wire.records.record import Record, decode_all, encode_batch

NOW_MS = 1_700_000_000_000


def batch(*values: bytes, timestamp_ms: int = NOW_MS, key: bytes | None = None, **options: Any) -> memoryview:
    """Encode one batch of these values; the options are those of `encode_batch`."""
    return memoryview(encode_batch([Record(0, timestamp_ms, key, value) for value in values], **options))


def values_of(data: Any) -> list[bytes | None]:
    """Return the values of all records in complete batches."""
    return [record.value for record in decode_all(bytes(data))]
