"""Wait until an operation that a broker has started is complete."""

from collections.abc import Awaitable, Callable

from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.progress import progress
from barnabas.client.core.cluster import ClusterClient


async def until_done(
    cluster: ClusterClient, remaining: Callable[[], Awaitable[int]], wait_s: float, operation: str
) -> None:
    """Call `remaining` repeatedly until it returns 0, and show a progress bar.

    :param operation: Name of the operation, for the error message.
    :raises CommandError: If that takes longer than `wait_s` seconds.
    """
    retry = cluster.retry
    deadline_ms = retry.clock.monotonic_ms() + wait_s * 1000
    before = await remaining()
    with progress(before) as advance:
        attempts = 0
        while before:
            if retry.clock.monotonic_ms() >= deadline_ms:
                message = f"{operation}: not complete after {wait_s:g} s, {before} remaining"
                raise CommandError(
                    message, hint="the brokers continue; check again later, or increase --wait"
                )
            attempts += 1
            await retry.pause(attempts)
            now = await remaining()
            advance(max(0, before - now))
            before = now
