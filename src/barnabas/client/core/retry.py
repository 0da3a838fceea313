"""Retries with exponential backoff and jitter until a deadline (KIP-580)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from barnabas.base.clock import Clock, SystemClock
from barnabas.client.core.errors import is_retriable

ResultT = TypeVar("ResultT")

_JITTER = 0.2
#: How often the cluster is read for a change until it is visible: brokers of Apache Kafka apply it some
#: milliseconds after the controller's response. With the pauses between, 1.5 s.
VISIBILITY_READS_MAX = 6


@dataclass
class Retry:
    """Pauses of `first_ms`, doubling up to `pause_ms_max`, each with 20% jitter, for `timeout_ms` in all."""

    first_ms: int = 50
    pause_ms_max: int = 1_000
    timeout_ms: int = 30_000
    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=Random)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def pause_ms(self, attempts: int) -> float:
        """Return the pause after `attempts` failed attempts (at least 1)."""
        pause_ms = min(self.first_ms * 2.0 ** (attempts - 1), float(self.pause_ms_max))
        return pause_ms * self.random.uniform(1 - _JITTER, 1 + _JITTER)

    async def pause(self, attempts: int) -> None:
        await self.sleep(self.pause_ms(attempts) / 1000)

    async def until(
        self,
        read: Callable[[], Awaitable[ResultT]],
        is_reached: Callable[[ResultT], bool],
    ) -> ResultT:
        """Call `read` until its result satisfies the condition or the reads are used up; return the last result.

        :raises Exception: The errors of `read`, immediately.
        """
        for reads_count in range(1, VISIBILITY_READS_MAX):
            result = await read()
            if is_reached(result):
                return result
            await self.pause(reads_count)
        return await read()

    async def run(self, attempt: Callable[[], Awaitable[ResultT]], timeout_ms: int | None = None) -> ResultT:
        """Call `attempt` until it succeeds, raises an error that is not retriable, or has failed for `timeout_ms`.

        :raises Exception: The last failure of `attempt`.
        """
        give_up_ms = self.clock.monotonic_ms() + (self.timeout_ms if timeout_ms is None else timeout_ms)
        attempts = 0
        while True:
            try:
                return await attempt()
            except Exception as error:
                attempts += 1
                left_ms = give_up_ms - self.clock.monotonic_ms()
                if not is_retriable(error) or left_ms <= 0:
                    raise
            await self.sleep(min(self.pause_ms(attempts), left_ms) / 1000)
