import struct

from hypothesis import given
from hypothesis import strategies as st

from barnabas.api.data.produce_run import RUN_COUNT_MAX, AlikeRequests
from barnabas.api.short_way import COMMON_AT, CORRELATION_AT
from barnabas.wire.framing import SIZE_BYTES, FrameReader
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, read_header
from barnabas.wire.records.record import Record, encode_batch
from support.nodes import frame_of
from support.wire import produce_request

VERSION = 12
LAST_BYTES = 3  #: no tagged fields of partition, topic and request


def batch(value_bytes: int = 100) -> bytes:
    return bytes(encode_batch([Record(0, 1_700_000_000_000, None, bytes(value_bytes))]))


def frame(number: int, records: bytes | None = None, topic: str = "t") -> bytes:
    """A request as it comes from the network."""
    body = frame_of(produce_request(topic, bytes(16), records or batch()), VERSION, number)
    return struct.pack(">i", len(body)) + body


def alike(topic: str = "t") -> AlikeRequests:
    one, records = frame(0, topic=topic), batch()
    common_end = len(one) - LAST_BYTES - len(records) - 2  # a size of two bytes stands before the batch
    return AlikeRequests(one[SIZE_BYTES:CORRELATION_AT], one[COMMON_AT:common_end])


def reader(data: bytes) -> FrameReader:
    frames = FrameReader(bytearray(1 << 20), 1 << 20)
    frames.buffer()[: len(data)] = data
    frames.received(len(data))
    return frames


def numbers(data: bytes) -> list[int]:
    """Correlation ids of the requests that are collected."""
    run = alike().collect(reader(data))
    assert len(run.batches) == len(run.ends) == len(run.correlation_ids)
    return [int.from_bytes(each, "big") for each in run.correlation_ids]


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 12))
def test_requests_of_any_sizes_are_collected_with_their_batches_and_headers(
    sizes: list[int], alike_count: int
) -> None:
    batches = [batch(size) for size in sizes] + [batch()] * alike_count
    frames = [frame(number, each) for number, each in enumerate(batches)]
    run = alike().collect(reader(b"".join(frames)))
    assert [bytes(each) for _, each in run.batches] == batches
    assert [header for header, _ in run.batches] == [read_header(each) for each in batches]
    assert [int.from_bytes(each, "big") for each in run.correlation_ids] == list(range(len(batches)))
    assert run.ends == [sum(map(len, frames[: at + 1])) for at in range(len(frames))]


@given(st.integers(0, 2 * len(frame(0))))
def test_a_request_that_is_not_whole_is_left(cut: int) -> None:
    data = frame(1) + frame(2)
    assert numbers(data[:cut]) == [1, 2][: cut // len(frame(1))]


def test_a_request_to_another_topic_ends_a_run() -> None:
    assert numbers(frame(1) + frame(2, topic="u") + frame(3)) == [1]
    assert numbers(frame(1, topic="u")) == []


@given(st.integers(0, len(frame(0)) - 1), st.integers(1, 255))
def test_a_request_that_differs_anywhere_but_in_its_batch_and_number_ends_a_run(at: int, change: int) -> None:
    other = bytearray(frame(2))
    other[at] ^= change
    free = [
        *range(CORRELATION_AT, COMMON_AT),
        *range(len(other) - LAST_BYTES - len(batch()), len(other) - LAST_BYTES),
    ]
    found = alike().collect(reader(frame(1) + other + frame(3)))
    assert len(found.ends) == (3 if at in free else 1)


def test_a_request_that_is_too_short_for_a_batch_is_left() -> None:
    assert numbers(frame(1, batch()[: BATCH_HEADER_BYTES - 1])) == []
    assert numbers(frame(1, batch()[:BATCH_HEADER_BYTES])) == [
        1
    ]  # whose length does not fit, as the log will see


def test_a_request_whose_records_end_elsewhere_is_left() -> None:
    whole = frame(1)
    records_at = len(whole) - LAST_BYTES - len(batch()) - 2
    shorter = bytearray(whole)
    shorter[records_at] -= 1
    assert numbers(bytes(shorter)) == []


def test_a_run_has_a_bound() -> None:
    one = frame(0)
    run = alike().collect(reader(one * (RUN_COUNT_MAX + 5)))
    assert len(run.ends) == RUN_COUNT_MAX
    assert run.ends[-1] == RUN_COUNT_MAX * len(one)


def test_more_sizes_than_are_remembered_are_collected_all_the_same() -> None:
    requests = alike()
    for size in range(1, 300):
        assert len(requests.collect(reader(frame(size, batch(size)) * 2)).ends) == 2
