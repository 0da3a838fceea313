"""Staying until what a broker has begun is done."""

from collections.abc import Awaitable, Callable

from barnabas.cli.failures import CommandError
from barnabas.cli.work.progress import progress
from barnabas.client.core.cluster import ClusterClient


async def until_done(
    cluster: ClusterClient, left: Callable[[], Awaitable[int]], wait_s: float, what: str
) -> None:
    """Ask again and again how much is left, with progress for people, until nothing is.

    :param what: what is waited for, as a sentence begins with it.
    :raises CommandError: When that takes longer than `wait_s` seconds.
    """
    retry = cluster.retry
    give_up_ms = retry.clock.monotonic_ms() + wait_s * 1000
    before = await left()
    with progress(before, of_records=True) as advance:
        attempts = 0
        while before:
            if retry.clock.monotonic_ms() >= give_up_ms:
                message = f"{what}: not done after {wait_s:g} s, {before} left"
                raise CommandError(
                    message, hint="the brokers go on with it; look again later, or give --wait more seconds"
                )
            attempts += 1
            await retry.pause(attempts)
            now = await left()
            advance(max(0, before - now))
            before = now
