"""A task that changes the metadata when it is woken."""

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.telemetry.logs import Logger
from barnabas.wire.errors import KafkaError


class WokenTask:
    """Calls `act` after each `wake`, and again some time after it failed."""

    def __init__(
        self, name: str, act: Callable[[], Awaitable[None]], *, retry_s: float, log: Logger, warning: str
    ) -> None:
        """:param warning: Logged when `act` raises an error."""
        self._name = name
        self._act = act
        self._retry_s = retry_s
        self._log = log
        self._warning = warning
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def wake(self) -> None:
        """Call `act` soon; several calls before that count as one."""
        self._woken.set()

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self._act()
            except KafkaError as error:
                self._log.warning(self._warning, why=error.message)
            except Exception:  # the broker would never act again, and others would wait for it
                self._log.exception(self._warning)
            else:
                continue
            await asyncio.sleep(self._retry_s)
            self._woken.set()
