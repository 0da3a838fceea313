import asyncio
import threading
from collections.abc import Callable

import pytest

from barnabas.policy import worker as module
from barnabas.policy.worker import GIVEN_UP_COUNT_MAX, OutOfTime, PolicyWorker, _Thread
from support.loop import on_loop

LONG_MS = 60_000
SHORT_MS = 20


@on_loop
async def test_calls_are_made_one_at_a_time_in_a_single_thread() -> None:
    worker = PolicyWorker("w")
    idents = await asyncio.gather(*(worker.call(threading.get_ident, LONG_MS) for _ in range(5)))
    assert len(set(idents)) == 1
    assert threading.get_ident() not in idents
    worker.close()


@on_loop
async def test_the_loop_is_not_blocked_by_a_call() -> None:
    worker, gate = PolicyWorker("w"), threading.Event()
    calling = asyncio.create_task(worker.call(lambda: gate.wait(30), LONG_MS))
    await asyncio.sleep(0)
    gate.set()
    assert await calling
    worker.close()


@on_loop
async def test_a_call_that_times_out_is_abandoned_and_the_next_has_a_new_thread() -> None:
    worker, gate = PolicyWorker("w"), threading.Event()
    with pytest.raises(OutOfTime, match="no answer within 20 ms"):
        await worker.call(lambda: gate.wait(30), SHORT_MS)
    assert await worker.call(lambda: "fine", LONG_MS) == "fine"
    gate.set()
    worker.close()


async def give_up(worker: PolicyWorker, function: Callable[[], object]) -> threading.Thread:
    """Call a function that takes too long; return its thread."""
    begun: list[threading.Thread] = []

    def call() -> None:
        begun.append(threading.current_thread())
        function()

    with pytest.raises(OutOfTime):
        await worker.call(call, 200)
    return begun[0]


def spin() -> None:
    while True:
        pass


@on_loop
async def test_an_endless_loop_in_python_is_interrupted_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INTERRUPTED_AFTER_S", 0.01)
    worker = PolicyWorker("w")
    thread = await give_up(worker, spin)
    while thread.is_alive():
        await asyncio.sleep(0.001)
    assert worker.statistics() == {"given_up_count": 0}


def test_an_endless_loop_is_interrupted_although_the_event_loop_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INTERRUPTED_AFTER_S", 0.05)
    thread = asyncio.run(give_up(PolicyWorker("w"), spin))
    thread.join(30)
    assert not thread.is_alive()


@on_loop
async def test_the_number_of_threads_held_by_blocked_calls_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_Thread, "give_up", _Thread.end)  # as if they were blocked outside of Python
    worker, gate = PolicyWorker("w"), threading.Event()
    threads = [await give_up(worker, lambda: gate.wait(30)) for _ in range(GIVEN_UP_COUNT_MAX)]
    assert worker.statistics() == {"given_up_count": GIVEN_UP_COUNT_MAX}
    with pytest.raises(OutOfTime, match=f"{GIVEN_UP_COUNT_MAX} earlier calls"):
        await worker.call(lambda: "fine", LONG_MS)
    gate.set()
    for thread in threads:
        thread.join(30)
    assert await worker.call(lambda: "fine", LONG_MS) == "fine"
    worker.close()


@on_loop
async def test_the_time_limit_starts_when_a_call_starts() -> None:
    worker, gate = PolicyWorker("w"), threading.Event()
    first = asyncio.create_task(worker.call(lambda: gate.wait(30), 50))
    second = asyncio.create_task(worker.call(lambda: "fine", LONG_MS))
    with pytest.raises(OutOfTime):
        await first
    assert await second == "fine"
    gate.set()
    worker.close()


@on_loop
async def test_the_call_of_a_cancelled_caller_goes_on_and_its_thread_is_used_again() -> None:
    worker, gate = PolicyWorker("w"), threading.Event()
    ended: list[int] = []

    def call() -> None:
        gate.wait(30)
        ended.append(threading.get_ident())

    calling = asyncio.create_task(worker.call(call, LONG_MS))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    gate.set()
    assert await worker.call(threading.get_ident, LONG_MS) == ended[0]
    assert worker.statistics() == {"given_up_count": 0}
    worker.close()


@on_loop
async def test_a_cancelled_caller_that_has_had_no_turn_leaves_no_call() -> None:
    worker, gate = PolicyWorker("w"), threading.Event()
    called: list[str] = []
    first = asyncio.create_task(worker.call(lambda: gate.wait(30), LONG_MS))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(worker.call(lambda: called.append("late"), LONG_MS))
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    assert await first
    assert await worker.call(lambda: "fine", LONG_MS) == "fine"
    assert called == []
    worker.close()


@on_loop
async def test_several_calls_run_at_a_time_and_others_wait_for_a_limited_time() -> None:
    worker, gate = PolicyWorker("w", 2, turn_limit_ms=SHORT_MS), threading.Event()
    calls = [asyncio.create_task(worker.call(lambda: gate.wait(30), LONG_MS)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(OutOfTime, match="2 other calls were running"):
        await worker.call(lambda: "too many", LONG_MS)
    gate.set()
    assert await asyncio.gather(*calls) == [True, True]
    assert await worker.call(lambda: "fine", LONG_MS) == "fine"
    worker.close()


@on_loop
async def test_idle_means_that_no_call_runs() -> None:
    worker, gate = PolicyWorker("w", 2), threading.Event()
    await worker.when_idle()
    calling = asyncio.create_task(worker.call(lambda: gate.wait(30), LONG_MS))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(worker.when_idle())
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    await waiting
    assert await calling
    worker.close()
