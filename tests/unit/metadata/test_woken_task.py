"""A task that is woken, and tries again when the store fails."""

import asyncio

import pytest

from barnabas.metadata.woken_task import WokenTask
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import in_virtual_time, turns

RETRY_S = 2.0
STORE_FAILED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The store failed.")


class Work:
    """Fails a number of times, and counts its calls."""

    def __init__(self, failures_count: int = 0, error: Exception = STORE_FAILED) -> None:
        self.failures_left = failures_count
        self.error = error
        self.calls_count = 0
        self.task = WokenTask("work", self.act, retry_s=RETRY_S, log=get_logger("barnabas"), warning="failed")

    async def act(self) -> None:
        self.calls_count += 1
        if self.failures_left:
            self.failures_left -= 1
            raise self.error


@in_virtual_time
async def test_it_acts_once_for_several_calls_and_not_before_the_first() -> None:
    work = Work()
    work.task.start()
    await turns()
    assert work.calls_count == 0
    for _ in range(3):
        work.task.wake()
    await turns()
    assert work.calls_count == 1
    await work.task.stop()


@in_virtual_time
async def test_a_call_before_the_start_counts() -> None:
    work = Work()
    work.task.wake()
    work.task.start()
    await turns()
    assert work.calls_count == 1
    await work.task.stop()


@pytest.mark.parametrize("error", [STORE_FAILED, KeyError("unexpected")])
@in_virtual_time
async def test_it_tries_again_after_a_pause_until_it_succeeds(error: Exception) -> None:
    work = Work(2, error)
    work.task.start()
    work.task.wake()
    await turns()
    assert work.calls_count == 1
    await asyncio.sleep(2.5 * RETRY_S)
    assert work.calls_count == 3
    await asyncio.sleep(10 * RETRY_S)
    assert work.calls_count == 3
    await work.task.stop()


@in_virtual_time
async def test_after_a_stop_it_does_nothing() -> None:
    work = Work()
    work.task.start()
    await work.task.stop()
    work.task.wake()
    await turns()
    assert work.calls_count == 0
