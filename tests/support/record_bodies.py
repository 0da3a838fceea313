"""Record bytes that may be invalid anywhere, and a simple reader that decides whether they are valid."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from barnabas.wire.records.batch import NO_TIMESTAMP, seal
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, RecordHeaders
from support.malformed import NOW_MS, batch_of

_BASE_TIMESTAMP_AT = 27  #: field in the batch header

INT32_BITS, INT64_BITS = 32, 64
#: Numbers at the limits of their types.
EDGES = (-(2**63), -(2**31) - 1, -(2**31), -2, -1, 0, 1, 2, 2**31 - 1, 2**31, 2**63 - 1, 2**64)

stamps = st.sampled_from([-1, 0, NOW_MS]) | st.integers(NOW_MS - 10**9, NOW_MS + 1000)
texts = st.none() | st.binary(max_size=20) | st.sampled_from([63, 64, 200, 9000]).map(bytes)
headers: st.SearchStrategy[RecordHeaders] = st.lists(st.tuples(st.text(max_size=3), texts), max_size=2).map(
    tuple
)
record_lists = st.lists(st.builds(Record, st.just(0), stamps, texts, texts, headers), min_size=1, max_size=6)


@dataclass(frozen=True, slots=True)
class Body:
    """The uncompressed records section of a batch, and the header fields about it."""

    data: bytes
    count: int  #: from the header
    base_ms: int

    def batch(self, codec: Compression = Compression.NONE) -> memoryview:
        """Build the batch of these records."""
        made = bytearray(batch_of(codec, self.data, self.count))
        made[_BASE_TIMESTAMP_AT : _BASE_TIMESTAMP_AT + 8] = self.base_ms.to_bytes(8, "big", signed=True)
        seal(made, 0)
        return memoryview(made)


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Generate valid records, and records with a changed number, length, count or byte."""
    records = draw(record_lists) * draw(st.sampled_from([1] * 9 + [30]))
    base_ms = draw(st.sampled_from([records[0].timestamp_ms] * 6 + [0, -(2**63), 2**63 - 1]))
    parts = [_parts(record, record.timestamp_ms - base_ms, at) for at, record in enumerate(records)]
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        of = draw(st.sampled_from(parts))
        at = draw(st.sampled_from([at for at, part in enumerate(of) if isinstance(part, int)]))
        of[at] = draw(_spellings(of[at]))
    data = bytearray()
    for of in parts:
        fields = b"".join(part if isinstance(part, bytes) else spelled(part) for part in of)
        data += (draw(_spellings(len(fields))) if draw(_rarely) else spelled(len(fields))) + fields
    if draw(_rarely):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 1))] = draw(st.binary(max_size=2))
    return Body(bytes(data), max(len(records) + draw(st.sampled_from([0] * 8 + [-1, 1])), 1), base_ms)


_rarely = st.sampled_from([False] * 9 + [True])


def _parts(record: Record, delta_ms: int, index: int) -> list[int | bytes]:
    """Return the fields of a record after its length: numbers and bytes."""
    parts = [b"\0", delta_ms, index, *_field(record.key), *_field(record.value), len(record.headers)]
    for name, value in record.headers:
        parts += [*_field(name.encode()), *_field(value)]
    return parts


def _field(data: bytes | None) -> list[int | bytes]:
    return [-1] if data is None else [len(data), data]


def _spellings(number: int | bytes) -> st.SearchStrategy[bytes]:
    """Generate encodings of this number or another one, perhaps longer than needed."""
    assert isinstance(number, int)
    others = st.integers(number - 2, number + 2) | st.sampled_from(EDGES)
    bytes_counts = st.just(0) | st.sampled_from([2, 4, 5, 6, 10, 11])
    return st.builds(spelled, st.just(number) | others, bytes_counts)


def spelled(number: int, bytes_count_min: int = 0) -> bytes:
    """Encode a zigzag varint of any size in at least this number of bytes."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    digits = bytearray()
    while rest >= 0x80 or len(digits) + 1 < bytes_count_min:
        digits.append(rest & 0x7F | 0x80)
        rest >>= 7
    digits.append(rest)
    return bytes(digits)


def read_records(body: Body) -> list[Record]:
    """Read records as the format defines them; `walk` must accept the same.

    :raises ValueError: If the bytes are not valid.
    """
    reader = _Reader(body.data)
    records = [reader.record(index, body.base_ms) for index in range(body.count)]
    if reader.position != len(body.data):
        raise ValueError("bytes follow the last record")
    return records


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def record(self, index: int, base_ms: int) -> Record:
        size_bytes = self._number(INT32_BITS)
        reader = _Reader(self._bytes(size_bytes))
        reader._bytes(1)
        timestamp_ms = base_ms + reader._number(INT64_BITS)
        if not -(2**63) <= timestamp_ms < 2**63:
            raise ValueError("a timestamp of more than 64 bits")
        if reader._number(INT32_BITS) != index:
            raise ValueError("offsets are not consecutive")
        key, value = reader._nullable(), reader._nullable()
        headers = reader._headers()
        if reader.position != size_bytes:
            raise ValueError("the record is longer than its fields")
        return Record(index, timestamp_ms, key, value, headers)

    def _headers(self) -> RecordHeaders:
        count = self._number(INT32_BITS)
        if count < 0:
            raise ValueError("fewer headers than none")
        return tuple((self._text(), self._nullable()) for _ in range(count))

    def _text(self) -> str:
        return self._bytes(self._number(INT32_BITS)).decode("utf-8", "replace")

    def _nullable(self) -> bytes | None:
        size_bytes = self._number(INT32_BITS)
        return None if size_bytes < 0 else self._bytes(size_bytes)

    def _bytes(self, size_bytes: int) -> bytes:
        if not 0 <= size_bytes <= len(self._data) - self.position:
            raise ValueError("a field is cut off")
        self.position += size_bytes
        return self._data[self.position - size_bytes : self.position]

    def _number(self, bits: int) -> int:
        zigzag, shift = 0, 0
        while True:
            [byte] = self._bytes(1)
            zigzag |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= bits:
                raise ValueError("a number in too many bytes")
        if zigzag >> bits:
            raise ValueError(f"a number of more than {bits} bits")
        return zigzag >> 1 if zigzag & 1 == 0 else -(zigzag >> 1) - 1


def refusable(records: Sequence[Record], earliest_ms: int, latest_ms: int, *, needs_keys: bool) -> list[int]:
    """Return the indexes of the records that a topic with these limits rejects."""
    return [
        index
        for index, record in enumerate(records)
        if (needs_keys and record.key is None)
        or not (earliest_ms <= record.timestamp_ms <= latest_ms or record.timestamp_ms == NO_TIMESTAMP)
    ]


def largest_timestamp_ms(records: Sequence[Record]) -> int:
    """Return the largest timestamp, which the batch header must have."""
    return max(NO_TIMESTAMP, *(record.timestamp_ms for record in records))
