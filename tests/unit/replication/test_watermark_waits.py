"""Waits for a watermark."""

import pytest

from barnabas.replication.watermark_waits import CLEANED_COUNT_MIN, WatermarkWaits
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import in_virtual_time


@in_virtual_time
async def test_a_watermark_completes_the_waits_that_it_reaches() -> None:
    waits = WatermarkWaits()
    first, second = waits.add(3), waits.add(5)
    waits.complete(4)
    assert (first.done(), second.done(), len(waits)) == (True, False, 1)
    waits.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")
    with pytest.raises(KafkaError, match="moved"):
        await second
    assert not waits


@in_virtual_time
async def test_waits_that_have_ended_do_not_stay_while_the_watermark_stands_still() -> None:
    waits = WatermarkWaits()
    pending = waits.add(1)
    for _ in range(5 * CLEANED_COUNT_MIN):
        waits.add(2).cancel()
    assert len(waits) <= CLEANED_COUNT_MIN
    waits.complete(1)
    assert pending.done()
