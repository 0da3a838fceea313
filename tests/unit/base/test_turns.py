import asyncio
from collections.abc import Awaitable, Callable

from barnabas.base.turns import EXTENDED_TURN_MS_MAX, TURN_MS_MAX, Share, Turns


class Thread:
    """Records the time of callbacks and coroutines, and their order."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.turns = Turns(lambda: self.now_ns)
        self.log: list[str] = []

    def work(self, name: str, ms: int) -> None:
        self.log.append(name)
        self.now_ns += ms * 1_000_000

    async def steps(self, name: str, count: int, ms: int, share: Share) -> None:
        for _ in range(count):
            await self.turns.checkpoint(share)
            self.work(name, ms)


def run(test: Callable[[Thread], Awaitable[None]]) -> list[str]:
    thread = Thread()
    asyncio.run(_run(test, thread))
    return thread.log


async def _run(test: Callable[[Thread], Awaitable[None]], thread: Thread) -> None:
    await test(thread)


def test_a_request_within_its_turn_does_not_wait() -> None:
    async def test(thread: Thread) -> None:
        steps = thread.steps("a", TURN_MS_MAX, 1, Share())
        try:
            steps.send(None)
        except StopIteration:
            thread.log.append("done")

    assert run(test) == ["a"] * TURN_MS_MAX + ["done"]


def test_small_requests_are_handled_beyond_a_turn_up_to_a_limit() -> None:
    async def test(thread: Thread) -> None:
        thread.turns.begin()
        thread.work("large", TURN_MS_MAX)
        assert thread.turns.must_yield()
        for _ in range(2 * EXTENDED_TURN_MS_MAX):
            thread.turns.begin()
            if thread.turns.must_yield():
                break
            thread.work("small", 1)
            assert thread.turns.must_yield()

    assert run(test) == ["large"] + ["small"] * (EXTENDED_TURN_MS_MAX - TURN_MS_MAX)


def test_two_large_requests_take_turns() -> None:
    async def test(thread: Thread) -> None:
        await asyncio.gather(
            thread.steps("a", 4, TURN_MS_MAX, Share()), thread.steps("b", 4, TURN_MS_MAX, Share())
        )

    log = run(test)
    assert sorted(log[:4]) == sorted(log[4:]) == ["a", "a", "b", "b"]


def test_a_socket_is_served_between_turns_of_large_requests() -> None:
    async def test(thread: Thread) -> None:
        loop = asyncio.get_running_loop()

        def small_request(left: int) -> None:
            thread.turns.begin()
            thread.work("small", 0)
            if left:
                loop.call_soon(small_request, left - 1)

        loop.call_soon(small_request, 50)
        await asyncio.gather(*(thread.steps("large", 5, TURN_MS_MAX, Share()) for _ in range(4)))

    log = run(test)
    assert log.count("large") == 20
    assert "large large" not in " ".join(log[8:])  # after the first turn of each


def test_the_client_that_used_less_time_goes_first() -> None:
    async def test(thread: Thread) -> None:
        heavy, light, turns = Share(), Share(), thread.turns
        turns.begin()
        thread.work("start", TURN_MS_MAX)
        for number in range(3):
            turns.call_later(heavy, lambda number=number: thread.work(f"heavy {number}", 1))  # type: ignore[misc]
        turns.call_later(light, lambda: thread.work("light", 1))
        while turns.statistics()["waiting_count"]:
            await asyncio.sleep(0)

    assert run(test) == ["start", "heavy 0", "light", "heavy 1", "heavy 2"]


def test_connections_of_one_principal_have_one_share() -> None:
    async def test(thread: Thread) -> None:
        many, one = Share(), Share()
        await asyncio.gather(
            *(thread.steps("many", 2, TURN_MS_MAX, many) for _ in range(10)),
            thread.steps("one", 4, TURN_MS_MAX, one),
        )

    log = run(test)
    assert log[: log.index("many") + 9].count("one") >= 3


def test_a_continuation_that_fails_does_not_block_others() -> None:
    async def test(thread: Thread) -> None:
        failures: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))

        def fail() -> None:
            raise ValueError("a continuation fails")

        thread.turns.call_later(Share(), fail)
        thread.turns.call_later(Share(), lambda: thread.work("other", 0))
        while thread.turns.statistics()["waiting_count"]:
            await asyncio.sleep(0)
        assert len(failures) == 1

    assert run(test) == ["other"]


def test_a_principal_has_one_share_while_it_is_connected() -> None:
    turns = Turns(lambda: 0)
    share = turns.share_of("User:alice")
    share.used_ns = 5
    assert turns.share_of("User:alice") is share
    assert turns.share_of("User:bob") is not share
    del share
    assert turns.share_of("User:alice").used_ns == 0


def test_a_request_cancelled_while_waiting_is_skipped() -> None:
    async def test(thread: Thread) -> None:
        task = asyncio.ensure_future(thread.steps("cancelled", 2, TURN_MS_MAX, Share()))
        other = asyncio.ensure_future(thread.steps("other", 2, TURN_MS_MAX, Share()))
        await asyncio.sleep(0)
        task.cancel()
        await other

    assert run(test) == ["cancelled", "other", "other"]


def test_statistics_count_deferred_requests() -> None:
    async def test(thread: Thread) -> None:
        await thread.steps("a", 3, TURN_MS_MAX, Share())
        assert thread.turns.statistics() == {"waiting_count": 0, "continued_count": 2}

    run(test)
