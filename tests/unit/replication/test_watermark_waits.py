"""Waits for a watermark."""

import asyncio
import gc
from typing import Any

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


@in_virtual_time
async def test_the_error_of_a_wait_whose_request_has_ended_is_not_reported() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    waits = WatermarkWaits()
    waits.add(3)
    waits.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")
    gc.collect()
    assert not reported
