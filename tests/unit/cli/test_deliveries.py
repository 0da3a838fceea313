"""Results of the lines of `barnabas produce`."""

import asyncio

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.support.deliveries import DeliveredRange, Deliveries, lines_text
from barnabas.cli.support.failures import REFUSED, CommandError
from barnabas.client.producer.accumulator import RecordMetadata
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import on_loop

NO_KEY = KafkaError(ErrorCode.INVALID_RECORD, "no key")
DENIED = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([3], "line 3"),
        ([1, 2], "lines 1-2"),
        ([1, 3], "lines 1, 3"),
        ([1, 2, 3, 7, 9, 10], "lines 1-3, 7, 9-10"),
    ],
)
def test_lines_are_printed_as_ranges(lines: list[int], text: str) -> None:
    assert lines_text(lines) == text


@on_loop
async def test_lines_with_the_same_error_are_reported_together() -> None:
    reported: list[CommandError] = []
    deliveries = Deliveries(reported.append)
    deliveries.fail(4, NO_KEY)
    deliveries.fail(2, NO_KEY)
    deliveries.fail(3, KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "large"))
    await asyncio.sleep(0)
    assert [str(each) for each in reported] == [
        "lines 2, 4: INVALID_RECORD: no key",
        "line 3: MESSAGE_TOO_LARGE: large",
    ]
    assert reported[0].details == {"lines": [2, 4]}
    assert (deliveries.failed_count, deliveries.stopping) == (3, [])


@on_loop
async def test_an_error_that_affects_later_lines_is_reported_at_the_end() -> None:
    reported: list[CommandError] = []
    deliveries = Deliveries(reported.append)
    deliveries.fail(1, DENIED)
    deliveries.flush()
    [stopping] = deliveries.stopping
    assert (reported, stopping.exit_code, stopping.kind) == ([], REFUSED, "TOPIC_AUTHORIZATION_FAILED")


@on_loop
async def test_deliveries_are_counted_by_partition() -> None:
    deliveries = Deliveries(pytest.fail)
    for line, offset in enumerate((5, 6), 1):
        delivered: asyncio.Future[RecordMetadata] = asyncio.Future()
        delivered.set_result(RecordMetadata(TopicPartition("t", 1), offset, 0))
        deliveries.count(line, delivered)
    given_up: asyncio.Future[RecordMetadata] = asyncio.Future()
    given_up.cancel()
    deliveries.count(3, given_up)
    assert deliveries.partitions == {1: DeliveredRange(2, 5, 6)}
    assert (deliveries.records_count, deliveries.failed_count) == (2, 0)
