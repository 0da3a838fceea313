import asyncio
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import ConnectionLost, NotKafka, check, error_for, is_retriable
from barnabas.client.core.retry import VISIBILITY_READS_MAX, Retry
from barnabas.wire.errors import ErrorCode, KafkaError

LOST = ConnectionLost(BrokerAddress("h", 1), "lost")


class Sleeps:
    """A clock that sleeping advances."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pauses_ms: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses_ms.append(seconds * 1000)
        self.clock.advance(round(seconds * 1000))

    def retry(self, timeout_ms: int = 10_000) -> Retry:
        return Retry(100, 400, timeout_ms, self.clock, Random(1), self.sleep)


def test_pauses_double_up_to_their_limit_with_jitter() -> None:
    retry = Sleeps().retry()
    for attempts, expected_ms in ((1, 100), (2, 200), (3, 400), (4, 400), (60, 400)):
        assert expected_ms * 0.8 <= retry.pause_ms(attempts) <= expected_ms * 1.2


def test_a_call_is_repeated_until_it_succeeds() -> None:
    sleeps = Sleeps()
    outcomes: list[Exception | str] = [LOST, KafkaError(ErrorCode.LEADER_NOT_AVAILABLE), "done"]

    async def attempt() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert asyncio.run(sleeps.retry().run(attempt)) == "done"
    assert len(sleeps.pauses_ms) == 2


def test_the_last_error_is_raised_at_the_timeout() -> None:
    sleeps = Sleeps()

    async def attempt() -> None:
        raise LOST

    with pytest.raises(ConnectionLost):
        asyncio.run(sleeps.retry(timeout_ms=1_000).run(attempt))
    assert sum(sleeps.pauses_ms) == pytest.approx(1_000, abs=5), "the last pause ends with the time"


def test_a_fatal_error_is_raised_immediately() -> None:
    sleeps = Sleeps()

    async def attempt() -> None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)

    with pytest.raises(KafkaError):
        asyncio.run(sleeps.retry().run(attempt))
    assert sleeps.pauses_ms == []


def test_lost_connections_and_retriable_codes_are_retried() -> None:
    assert is_retriable(LOST)
    assert is_retriable(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert not is_retriable(KafkaError(ErrorCode.MESSAGE_TOO_LARGE))
    assert not is_retriable(NotKafka(BrokerAddress("h", 1), "http"))
    assert not is_retriable(ValueError())


def test_error_codes_become_exceptions_including_unknown_ones() -> None:
    assert error_for(0) is None
    check(0)
    with pytest.raises(KafkaError, match="POLICY_VIOLATION: no"):
        check(44, "no")
    unknown = error_for(9_999)
    assert unknown is not None
    assert unknown.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "9999" in unknown.message


@pytest.mark.parametrize(("at_read", "reads_count"), [(1, 1), (3, 3), (9, VISIBILITY_READS_MAX)])
def test_changes_that_become_visible_late_are_awaited_up_to_a_limit(at_read: int, reads_count: int) -> None:
    sleeps, reads = Sleeps(), 0

    async def read() -> int:
        nonlocal reads
        reads += 1
        return reads

    seen = asyncio.run(sleeps.retry().until(read, lambda number: number >= at_read))
    assert (seen, len(sleeps.pauses_ms)) == (reads_count, reads_count - 1)
