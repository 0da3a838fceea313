"""The walk as installed, which is machine code if there is a C compiler, and as plain Python."""

from types import ModuleType

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from barnabas.wire.records import walk as installed
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, read_header
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.record import Record, RecordHeaders, decode_batch, encode_batch
from barnabas.wire.records.varint import write_varint
from support.kernels import INTERPRETED
from support.malformed import NOW_MS
from support.record_bodies import Body, bodies, largest_timestamp_ms, read_records, refusable

INT64_MAX = (1 << 63) - 1
INT64_MIN = -1 - INT64_MAX
HEADERS_COUNT_MAX = 1000
LIMITS_MS = (0, NOW_MS - 10**8, NOW_MS, NOW_MS + 500, INT64_MAX)
#: A record of seven bytes: its length, attributes, deltas, null key and value, no headers.
SMALLEST = bytes([12, 0, 0, 0, 1, 1, 0])


Problem = installed.Problem
either = pytest.mark.parametrize("module", [installed, INTERPRETED], ids=["installed", "interpreted"])


def walk_all(
    module: ModuleType,
    body: bytes,
    count: int,
    *,
    base_ms: int = 0,
    earliest_ms: int = INT64_MIN,
    latest_ms: int = INT64_MAX,
    needs_keys: bool = False,
) -> installed.WalkResult:
    result = module.walk(body, 0, 0, count, base_ms, earliest_ms, latest_ms, needs_keys, HEADERS_COUNT_MAX)
    unlocked = module.walk_unlocked(
        body, 0, 0, count, base_ms, earliest_ms, latest_ms, needs_keys, HEADERS_COUNT_MAX
    )
    assert unlocked == result
    return result


def problem_of(module: ModuleType, body: bytes, count: int = 1, **options: int) -> installed.Problem:
    return Problem(walk_all(module, body, count, **options)[0])


def record(
    *, attributes: int = 0, timestamp: int = 0, offset: int = 0, key: int = -1, rest: bytes = b"\x01\x00"
) -> bytes:
    """Build a record from any fields, with a valid length."""
    fields = bytearray([attributes])
    for number in (timestamp, offset, key):
        write_varint(fields, number)
    fields += rest
    whole = bytearray()
    write_varint(whole, len(fields))
    return bytes(whole + fields)


def test_plain_python_is_used_if_nothing_is_compiled() -> None:
    assert not INTERPRETED.COMPILED


timestamps = st.integers(-1, 2**41)
texts = st.one_of(st.none(), st.binary(max_size=20))
headers: st.SearchStrategy[RecordHeaders] = st.lists(st.tuples(st.text(max_size=5), texts), max_size=3).map(
    tuple
)
record_lists = st.lists(
    st.builds(Record, st.just(0), timestamps, texts, texts, headers), min_size=1, max_size=9
)


@either
@given(records=record_lists)
def test_a_valid_batch_is_walked_to_its_end(module: ModuleType, records: list[Record]) -> None:
    batch = encode_batch(records)
    body = bytes(batch[BATCH_HEADER_BYTES:])
    problem, index, position, _, largest_ms = walk_all(
        module, body, len(records), base_ms=records[0].timestamp_ms
    )
    assert (problem, index, position) == (Problem.NONE, len(records), len(body))
    assert largest_ms == max(each.timestamp_ms for each in records)


@given(body=bodies())
def test_records_are_walked_to_their_end_exactly_if_they_can_be_decoded(body: Body) -> None:
    result = walk_all(installed, body.data, body.count, base_ms=body.base_ms)
    assert walk_all(INTERPRETED, body.data, body.count, base_ms=body.base_ms) == result
    problem, index, position, timestamp_ms, largest_ms = result
    try:
        records = read_records(body)
    except ValueError:
        assert Problem.NONE < problem < Problem.NO_KEY
        return
    assert (problem, index, position) == (Problem.NONE, body.count, len(body.data))
    assert (timestamp_ms, largest_ms) == (records[-1].timestamp_ms, largest_timestamp_ms(records))
    batch = body.batch()
    assert decode_batch(batch, 0, read_header(batch)) == records


@given(
    body=bodies(),
    earliest_ms=st.sampled_from((INT64_MIN, *LIMITS_MS)),
    latest_ms=st.sampled_from(LIMITS_MS),
    needs_keys=st.booleans(),
)
def test_a_walk_stops_at_the_first_record_that_the_topic_rejects(
    body: Body, earliest_ms: int, latest_ms: int, needs_keys: bool
) -> None:
    try:
        records = read_records(body)
    except ValueError:
        reject()
    refused = refusable(records, earliest_ms, latest_ms, needs_keys=needs_keys)
    limits = {"earliest_ms": earliest_ms, "latest_ms": latest_ms, "needs_keys": needs_keys}
    result = walk_all(installed, body.data, body.count, base_ms=body.base_ms, **limits)
    assert walk_all(INTERPRETED, body.data, body.count, base_ms=body.base_ms, **limits) == result
    problem, index, *_ = result
    assert (problem > Problem.NONE, index) == (bool(refused), refused[0] if refused else body.count)
    if refused:
        assert (problem == Problem.NO_KEY) == (needs_keys and records[index].key is None)


@given(body=st.binary(max_size=40), count=st.integers(1, 3), base_ms=st.integers(INT64_MIN, INT64_MAX))
def test_machine_code_and_python_agree_on_any_bytes(body: bytes, count: int, base_ms: int) -> None:
    assert walk_all(installed, body, count, base_ms=base_ms) == walk_all(
        INTERPRETED, body, count, base_ms=base_ms
    )


@given(prefix=st.binary(max_size=8), number=st.integers(0, 2**70), count=st.integers(1, 2))
def test_machine_code_and_python_agree_on_numbers_of_any_length(
    prefix: bytes, number: int, count: int
) -> None:
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    body = bytes([40]) + prefix + bytes([*digits, number]) + bytes(20)
    assert walk_all(installed, body, count) == walk_all(INTERPRETED, body, count)


@either
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", Problem.CUT_OFF),
        (SMALLEST, Problem.NONE),
        (SMALLEST[:-1], Problem.CUT_OFF),
        (SMALLEST + b"\0", Problem.BYTES_BEHIND),
        (SMALLEST + SMALLEST, Problem.BYTES_BEHIND),
        (bytes([14]) + SMALLEST[1:] + b"\0", Problem.RECORD_SIZE),
        (bytes([0]), Problem.CUT_OFF),
        (bytes([1]), Problem.CUT_OFF),
        (record(attributes=255), Problem.NONE),
        (record(offset=1), Problem.OFFSET_DELTA),
        (record(offset=-1), Problem.OFFSET_DELTA),
        (record(key=1, rest=b"k\x01\x00"), Problem.NONE),
        (record(key=9, rest=b"k\x01\x00"), Problem.CUT_OFF),
        (record(key=2**31 - 1), Problem.CUT_OFF),
        (record(key=-(2**31)), Problem.NONE),
        (record(key=2**31), Problem.CUT_OFF),
        (record(rest=b"\x01\x01"), Problem.HEADERS_COUNT),
        (record(rest=b"\x01\x02\x00"), Problem.HEADERS_COUNT),
        (record(rest=b"\x01\x02\x00\x01"), Problem.NONE),
        (record(rest=b"\x01\x02\x01\x01"), Problem.HEADER_WITHOUT_KEY),
        (record(rest=b"\x01\x02\x02\x01"), Problem.CUT_OFF),
        (record(rest=b"\x01\x02\x00\x02"), Problem.CUT_OFF),
        (record(rest=b"\x01\x02\x00\x01\x00"), Problem.RECORD_SIZE),
    ],
)
def test_each_flaw_has_its_error(module: ModuleType, body: bytes, expected: installed.Problem) -> None:
    assert problem_of(module, body) is expected


@either
def test_numbers_have_at_most_32_or_64_bits(module: ModuleType) -> None:
    def spelled(length: bytes = b"\x0c", timestamp: bytes = b"\0") -> bytes:
        rest = b"\0" + timestamp + b"\0\x01\x01\0"
        return length + rest

    longest32, longest64 = b"\x8c\x80\x80\x80\x00", b"\xff" * 9 + b"\x01"
    assert problem_of(module, spelled(longest32)) is Problem.NONE
    assert problem_of(module, spelled(b"\x8c\x80\x80\x80\x80\x00")) is Problem.CUT_OFF
    assert problem_of(module, spelled(b"\x8c\x80\x80\x80\x10")) is Problem.CUT_OFF
    assert problem_of(module, spelled(bytes([2 * 15]), longest64)) is Problem.NONE
    assert problem_of(module, spelled(bytes([2 * 15]), b"\xff" * 9 + b"\x02")) is Problem.CUT_OFF
    assert problem_of(module, spelled(bytes([2 * 16]), b"\x80" * 10 + b"\x00")) is Problem.CUT_OFF


@either
def test_a_timestamp_has_at_most_64_bits(module: ModuleType) -> None:
    for base_ms, delta_ms, fits in (
        (INT64_MAX - 1, 1, True),
        (INT64_MAX, 1, False),
        (INT64_MIN + 1, -1, True),
        (INT64_MIN, -1, False),
        (INT64_MAX, INT64_MIN, True),
        (INT64_MIN, INT64_MAX, True),
    ):
        expected = Problem.NONE if fits else Problem.TIMESTAMP
        assert problem_of(module, record(timestamp=delta_ms), base_ms=base_ms) is expected


@either
def test_record_headers_are_counted_over_the_whole_batch(module: ModuleType) -> None:
    def body(first: int, second: int) -> bytes:
        count, parts = bytearray(), b""
        for offset, number in enumerate((first, second)):
            count.clear()
            write_varint(count, number)
            parts += record(offset=offset, rest=b"\x01" + bytes(count) + bytes(2 * number))
        return parts

    assert problem_of(module, body(HEADERS_COUNT_MAX - 1, 1), 2) is Problem.NONE
    assert walk_all(module, body(HEADERS_COUNT_MAX - 1, 2), 2)[:2] == (Problem.TOO_MANY_HEADERS, 1)


@either
def test_a_walk_continues_after_a_record_that_the_topic_rejects(module: ModuleType) -> None:
    stamps = [100, 99, -1, 201, 200]
    body = b"".join(record(timestamp=stamp, offset=index) for index, stamp in enumerate(stamps))
    limits = (0, 100, 200, False, HEADERS_COUNT_MAX)
    problem, index, position, timestamp_ms, largest_ms = module.walk(body, 0, 0, 5, *limits)
    assert (problem, index, timestamp_ms, largest_ms) == (Problem.TOO_EARLY, 1, 99, 100)
    problem, index, position, timestamp_ms, _ = module.walk(body, position, 2, 5, *limits)
    assert (problem, index, timestamp_ms) == (Problem.TOO_LATE, 3, 201)
    problem, index, position, _, largest_ms = module.walk(body, position, 4, 5, *limits)
    assert (problem, index, position, largest_ms) == (Problem.NONE, 5, len(body), 200)


@either
@pytest.mark.parametrize("size", [1, 70_000, 200_000])
def test_an_lz4_frame_ends_after_its_last_block(module: ModuleType, size: int) -> None:
    frame = compress(Compression.LZ4, bytes(range(256)) * (size // 256 + 1))
    assert module.lz4_frame_end(frame) == len(frame)
    assert module.lz4_frame_end(frame + frame) == len(frame)
    for cut in (0, 6, 7, 10, len(frame) - 1):
        assert module.lz4_frame_end(frame[:cut]) == -1


@either
def test_checksums_and_the_size_are_parts_of_an_lz4_frame(module: ModuleType) -> None:
    block = b"\x01\0\0\x80a"
    plain = b"\x04\x22\x4d\x18\x60\x40\0" + block + bytes(4)
    with_all = b"\x04\x22\x4d\x18\x7c\x40" + bytes(8) + b"\0" + block + bytes(4) + bytes(4) + bytes(4)
    linked = b"\x04\x22\x4d\x18\x40\x40\0" + block + bytes(4)
    assert module.lz4_frame_end(plain) == len(plain)
    assert module.lz4_frame_end(with_all) == len(with_all)
    assert module.lz4_frame_end(linked) == -1


@either
def test_keys_are_required_if_the_topic_is_compacted(module: ModuleType) -> None:
    body = record(key=0, rest=b"\x01\x00") + record(offset=1)
    assert problem_of(module, body, 2) is Problem.NONE
    assert walk_all(module, body, 2, needs_keys=True)[:2] == (Problem.NO_KEY, 1)
