"""Loading, running and closing a shard."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from barnabas.base.clock import ManualClock
from barnabas.coordinator.counts import CoordinatorCounts
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.runner import (
    REFUSED_TIMER_MS,
    RETRY_MS,
    WRITE_TIMEOUT_MS,
    ShardRunner,
    ShardState,
)
from barnabas.coordinator.shard import Step
from barnabas.coordinator.shard_log import BATCH_RECORDS_MAX
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker
from support.loop import in_virtual_time, on_loop, turns
from support.shards import CountingShard, CountKey, CountValue, MemoryShardLog

Runner = ShardRunner[CountingShard]


async def running(
    log: MemoryShardLog | None = None, shard: CountingShard | None = None
) -> tuple[Runner, MemoryShardLog]:
    log = log or MemoryShardLog()
    runner = ShardRunner(shard or CountingShard(), log, ManualClock())
    await runner.load()
    return runner, log


async def add(runner: Runner, name: str, by: int = 1) -> int:
    return await runner.handle_request(
        lambda shard, result, pending: shard.add(result, pending, name, by), "add"
    )


async def wait_for(runner: Runner, name: str, count: int) -> int:
    return await runner.handle_request(
        lambda shard, result, pending: shard.wait(result, pending, name, count), "wait"
    )


async def look(runner: Runner, name: str) -> int:
    return await runner.handle_request(
        lambda shard, result, pending: shard.look(result, pending, name), "look"
    )


@on_loop
async def test_records_are_in_the_log_before_the_response() -> None:
    runner, log = await running()
    assert await add(runner, "a", 3) == 3
    assert runner.shard.counts == {"a": 3}
    assert [record[:2] for batch in log.batches for record, _ in batch.records] == [
        (CountKey(name="a"), CountValue(count=3))
    ]


@on_loop
async def test_a_reloaded_shard_has_its_state() -> None:
    runner, log = await running()
    await add(runner, "a", 3)
    await add(runner, "b", 4)
    marker = EndTransactionMarker(7, 1, 0, commit=True, timestamp_ms=0)
    log.end_transaction(marker)
    again, _ = await running(log)
    assert again.shard.counts == {"a": 3, "b": 4}
    assert again.shard.ended == [marker]
    assert again.shard.is_loaded
    assert again.state is ShardState.ACTIVE


@pytest.mark.parametrize("turns_count", range(6))
@on_loop
async def test_a_marker_written_while_a_shard_loads_is_replayed_once(turns_count: int) -> None:
    log = MemoryShardLog()
    markers = [
        EndTransactionMarker(producer_id, 1, 0, commit=True, timestamp_ms=0) for producer_id in range(3)
    ]
    for marker in markers[:2]:
        log.end_transaction(marker)
    runner = ShardRunner(CountingShard(), log, ManualClock())
    loading = asyncio.ensure_future(runner.load())
    await turns(turns_count)
    log.end_transaction(markers[2])
    runner.end_transaction(markers[2])
    await loading
    assert runner.shard.ended == markers


@on_loop
async def test_a_loading_shard_returns_coordinator_load_in_progress() -> None:
    runner = ShardRunner(CountingShard(), MemoryShardLog(), ManualClock())
    with pytest.raises(KafkaError) as refused:
        await add(runner, "a")
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@on_loop
async def test_a_pending_request_is_completed_by_a_later_event() -> None:
    runner, _ = await running()
    waiting = asyncio.ensure_future(wait_for(runner, "a", 2))
    await asyncio.sleep(0)
    await add(runner, "a")
    assert not waiting.done()
    await add(runner, "a")
    assert await waiting == 2


@on_loop
async def test_a_response_waits_until_the_records_are_stored() -> None:
    runner, log = await running()
    log.storing = asyncio.get_running_loop().create_future()
    request = asyncio.ensure_future(add(runner, "a"))
    seen = asyncio.ensure_future(runner.query(lambda shard, now_ms: shard.counts["a"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert runner.shard.counts == {"a": 1}
    assert not request.done()
    assert not seen.done()
    log.storing.set_result(None)
    assert (await request, await seen) == (1, 1)


async def write(runner: Runner, name: str) -> int:
    def event(shard: CountingShard, result: CoordinatorResult) -> int:
        result.append(CountKey(name=name), CountValue(count=1))
        return 1

    response = runner.write(event)
    return response if isinstance(response, int) else await response


async def query(runner: Runner, name: str) -> int:
    return await runner.query(lambda shard, now_ms: shard.counts[name])


@pytest.mark.parametrize("ask", [add, write, query])
@in_virtual_time
async def test_a_request_that_depends_on_records_which_are_not_stored_in_time_is_refused(
    ask: Callable[[Runner, str], Awaitable[int]],
) -> None:
    runner, log = await running()
    await add(runner, "a")
    log.storing = asyncio.get_running_loop().create_future()
    started_s = asyncio.get_running_loop().time()
    with pytest.raises(KafkaError) as refused:
        await ask(runner, "a")
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert asyncio.get_running_loop().time() - started_s == WRITE_TIMEOUT_MS / 1000
    assert runner.state is ShardState.ACTIVE
    if not log.storing.done():
        log.storing.set_result(None)
        await turns()


@in_virtual_time
async def test_side_effects_run_even_if_their_request_was_refused_meanwhile() -> None:
    done: list[str] = []
    log = MemoryShardLog()
    runner = ShardRunner(CountingShard(), log, ManualClock(), done.append)
    await runner.load()
    log.storing = asyncio.get_running_loop().create_future()

    def add_with_effect(shard: CountingShard, result: CoordinatorResult, pending: Pending[int]) -> None:
        shard.add(result, pending, "a", 1)
        result.do("write markers")

    with pytest.raises(KafkaError):
        await runner.handle_request(add_with_effect, "add")
    assert done == []
    log.storing.set_result(None)
    await turns()
    assert done == ["write markers"]


@on_loop
async def test_an_error_without_records_reaches_the_client() -> None:
    runner, _ = await running()
    with pytest.raises(KafkaError) as refused:
        await look(runner, "nothing")
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert runner.pending_count == 0
    runner.close("the test is over")


@on_loop
async def test_records_that_cannot_be_appended_change_no_state() -> None:
    runner, log = await running()
    log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")
    with pytest.raises(KafkaError) as refused:
        await add(runner, "a")
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert runner.shard.counts == {}
    log.refusal = None
    assert await add(runner, "a") == 1


def count_once(shard: CountingShard, result: CoordinatorResult) -> None:
    result.append(CountKey(name="a"), CountValue(count=shard.counts.get("a", 0) + 1))


class ExpiringShard(CountingShard):
    """Appends a record when a timer ends."""

    def expire(self, result: CoordinatorResult, key: TimerKey) -> None:
        count_once(self, result)


@in_virtual_time
async def test_an_event_without_a_request_is_run_again_when_its_records_can_be_appended() -> None:
    runner, log = await running()
    log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")
    runner.run_event(count_once)
    await asyncio.sleep(2.5 * RETRY_MS / 1000)
    assert runner.shard.counts == {}
    log.refusal = None
    await asyncio.sleep(10 * RETRY_MS / 1000)
    assert runner.shard.counts == {"a": 1}


@in_virtual_time
async def test_a_timer_whose_records_cannot_be_appended_is_set_again_unless_it_was_moved_or_cancelled() -> (
    None
):
    runner, log = await running(shard=ExpiringShard())
    for cancels, count in ((False, 1), (True, 1)):
        log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")
        runner.run_event(lambda shard, result: result.set_timer(("session", "m1"), 1))
        await asyncio.sleep(0.1)
        assert runner.timers_count == 1
        log.refusal = None
        if cancels:
            runner.run_event(lambda shard, result: result.cancel_timer(("session", "m1")))
        await asyncio.sleep(10 * RETRY_MS / 1000)
        assert runner.shard.counts == {"a": count}


@in_virtual_time
async def test_an_event_whose_records_are_too_large_is_not_run_again() -> None:
    runner, log = await running()
    log.refusal = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")
    runner.run_event(count_once)
    log.refusal = None
    await asyncio.sleep(10 * RETRY_MS / 1000)
    assert runner.shard.counts == {}


@on_loop
async def test_many_non_atomic_records_are_split_into_batches() -> None:
    runner, log = await running()
    names = [f"n{number}" for number in range(BATCH_RECORDS_MAX + 1)]

    def event(shard: CountingShard, result: CoordinatorResult) -> None:
        for name in names:
            result.append(CountKey(name=name), CountValue(count=1))
        result.is_atomic = False

    runner.run_event(event)
    assert [len(batch.records) for batch in log.batches] == [BATCH_RECORDS_MAX, 1]
    assert list(runner.shard.counts) == names


@on_loop
async def test_large_non_atomic_records_are_split_into_batches_that_the_log_accepts() -> None:
    runner, log = await running()
    log.bytes_max = 1_000
    names = [f"{number}" * 200 for number in range(10)]

    def event(shard: CountingShard, result: CoordinatorResult) -> None:
        for name in names:
            result.append(CountKey(name=name), CountValue(count=1))
        result.is_atomic = False

    runner.run_event(event)
    assert list(runner.shard.counts) == names
    assert len(log.batches) == 5


@in_virtual_time
async def test_a_timer_whose_records_are_too_large_comes_again_later() -> None:
    runner, log = await running(shard=ExpiringShard())
    log.refusal = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")
    runner.run_event(lambda shard, result: result.set_timer(("session", "m1"), 1))
    await asyncio.sleep(0.5 * REFUSED_TIMER_MS / 1000)
    assert runner._counts.refused_appends_count == 1
    log.refusal = None
    await asyncio.sleep(REFUSED_TIMER_MS / 1000)
    assert runner.shard.counts == {"a": 1}


@on_loop
async def test_other_clients_are_served_between_the_steps_of_an_event_until_the_shard_is_closed() -> None:
    runner, _ = await running()
    seen: list[str] = []

    def step(name: str) -> Step:
        def note(result: CoordinatorResult) -> None:
            seen.append(name)
            asyncio.get_running_loop().call_soon(seen.append, "other")

        return note

    await runner.run_steps([step("1"), step("2")])
    runner.close("a test")
    await runner.run_steps([step("3")])
    assert seen == ["1", "other", "2", "other"]


@on_loop
async def test_an_event_may_handle_an_append_failure() -> None:
    runner, log = await running()
    log.refusal = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")

    def event(shard: CountingShard, result: CoordinatorResult, pending: Pending[object]) -> None:
        shard.add(result, Pending(), "a", 1)
        result.on_append_error = lambda instead, error: instead.answer(pending, error.code)

    assert await runner.handle_request(event, "add") is ErrorCode.UNKNOWN_SERVER_ERROR


@on_loop
async def test_an_error_reaches_the_client() -> None:
    runner, _ = await running()

    def event(shard: CountingShard, result: CoordinatorResult, pending: Pending[int]) -> None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    with pytest.raises(KafkaError) as refused:
        await runner.handle_request(event, "refused")
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert runner.statistics()["pending_count"] == 0


@on_loop
async def test_a_timer_expires_with_its_key() -> None:
    runner, _ = await running()
    came = asyncio.get_running_loop().create_future()
    runner.shard.expire = lambda result, key: came.set_result(key)  # type: ignore[method-assign]
    runner.run_event(lambda shard, result: result.set_timer(("session", "m1"), 1))
    assert await came == ("session", "m1")
    assert runner.statistics()["timers_count"] == 0


@on_loop
async def test_a_timer_can_be_moved_and_cancelled() -> None:
    runner, _ = await running()
    runner.run_event(lambda shard, result: result.set_timer(("a",), 60_000))
    runner.run_event(lambda shard, result: result.set_timer(("a",), 60_000))
    assert runner.statistics()["timers_count"] == 1
    runner.run_event(lambda shard, result: result.cancel_timer(("a",)))
    assert runner.statistics()["timers_count"] == 0


@on_loop
async def test_pending_requests_fail_when_another_broker_takes_over() -> None:
    runner, _ = await running()
    waiting = asyncio.ensure_future(wait_for(runner, "a", 2))
    await asyncio.sleep(0)
    runner.close("the leader has changed")
    with pytest.raises(KafkaError) as raised:
        await waiting
    assert raised.value.code is ErrorCode.NOT_COORDINATOR
    assert runner.shard.is_unloaded
    assert runner.statistics()["timers_count"] == 0
    with pytest.raises(KafkaError):
        await add(runner, "a")


@on_loop
async def test_a_pending_request_whose_client_is_gone_is_dropped() -> None:
    runner, _ = await running()
    waiting = asyncio.ensure_future(wait_for(runner, "a", 1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await add(runner, "a") == 1
    assert runner.statistics()["pending_count"] == 0


@pytest.mark.parametrize("damage", [KafkaError(ErrorCode.CORRUPT_MESSAGE, "damaged"), KeyError("who?")])
@on_loop
async def test_a_damaged_log_fails_its_shard(damage: Exception) -> None:
    log = MemoryShardLog()

    def damaged(offset: int) -> list[object]:
        raise damage

    log.read = damaged  # type: ignore[method-assign, assignment]
    runner, _ = await running(log)
    assert runner.state is ShardState.FAILED
    with pytest.raises(KafkaError) as refused:
        await add(runner, "a")
    assert refused.value.code is ErrorCode.NOT_COORDINATOR


@in_virtual_time
async def test_a_log_that_cannot_be_read_for_want_of_descriptors_is_loaded_later() -> None:
    runner, log = await running()
    for name in ("a", "b"):
        await add(runner, name)
    log.failed_reads_left = 3
    runner, _ = await running(log)
    assert asyncio.get_running_loop().time() == 3 * RETRY_MS / 1000
    assert runner.shard.counts == {"a": 1, "b": 1}
    assert await add(runner, "a") == 2


@on_loop
async def test_a_log_on_a_failed_disk_fails_its_shard() -> None:
    log = MemoryShardLog()
    log.failed_reads_left, log.has_failed_disk = 1, True
    runner, _ = await running(log)
    assert runner.state is ShardState.FAILED


@on_loop
async def test_side_effects_run_when_the_records_are_stored() -> None:
    done: list[object] = []
    log = MemoryShardLog()
    log.storing = asyncio.get_running_loop().create_future()
    runner = ShardRunner(CountingShard(), log, ManualClock(), done.append)
    await runner.load()
    runner.run_event(lambda shard, result: result.do("write markers"))
    await asyncio.sleep(0)
    assert done == []
    log.storing.set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == ["write markers"]


@on_loop
async def test_loads_appends_and_waits_are_counted() -> None:
    runner, log = await running()
    counts = runner._counts
    assert counts == CoordinatorCounts(loads_count=1)
    await add(runner, "a")
    log.storing = asyncio.get_running_loop().create_future()
    request = asyncio.ensure_future(add(runner, "a"))
    await asyncio.sleep(0)
    clock = runner._clock
    assert isinstance(clock, ManualClock)
    await asyncio.sleep(0)
    clock.advance(30)
    log.storing.set_result(None)
    await request
    log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")
    with pytest.raises(KafkaError):
        await add(runner, "a")
    assert counts == CoordinatorCounts(
        loads_count=1, batches_count=2, records_count=2, refused_appends_count=1, waits_count=1, wait_ms=30
    )


@on_loop
async def test_an_error_after_the_client_of_a_request_is_gone_is_not_reported() -> None:
    errors: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["message"]))
    runner, log = await running()
    log.storing = storing = loop.create_future()

    async def stored() -> None:
        await storing

    log.stored = stored  # type: ignore[method-assign, assignment]
    waiting = asyncio.ensure_future(runner.query(lambda shard, _: shard.counts))
    await turns(2)
    storing.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR, "the leader has changed"))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await turns(4)
    del waiting
    gc.collect()  # asyncio reports an error that was not retrieved now
    assert errors == []
