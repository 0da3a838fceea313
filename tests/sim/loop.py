"""An event loop on virtual time. It waits for nothing: when no callback is ready, time jumps to the next timer.

Every callback belongs to a node, such as a broker or a client, which is inherited through the context. After a node has
been killed, its callbacks do not run any more, as in a process that was killed. Those of a paused node wait.
"""

import asyncio
import hashlib
import heapq
import itertools
import logging
import random
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any
from unittest import mock

from barnabas.base.buffers import Buffer
from barnabas.telemetry.logs import Logger
from barnabas.wire.errors import KafkaError
from sim.network import Network

#: Virtual seconds since an arbitrary point at the start.
START_S = 1_000.0

#: Virtual duration of a function that runs in a thread.
THREAD_S = (50e-6, 2e-3)

#: Of some functions, such as flushes of a disk that is busy, where `stalled_share` is not zero.
STALLED_S = (0.01, 0.5)

_serial = itertools.count()


class Trace:
    """A digest of all that crosses the network and all changes of files, with their times."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop
        self._hash = hashlib.sha256()
        self.root = b"/"  #: of the disks; messages may name it, and it is not the same in each process

    def add(self, kind: str, data: Buffer) -> None:
        data = bytes(data).replace(self.root, b"/")
        self._hash.update(f"{self._loop.now_s:.9f} {kind} {len(data)} ".encode())
        self._hash.update(data)

    def digest(self) -> str:
        return self._hash.hexdigest()[:16]


class Node:
    """A process of the simulation. A process that starts again is another node."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_paused = False
        self.delayed: list[events.Handle] = []  #: callbacks that are due, but wait until the pause is over

    def may_run(self, handle: events.Handle) -> bool:
        """Whether a callback runs now; in a pause it is delayed."""
        if self.is_alive and self.is_paused:
            self.delayed.append(handle)
        return self.is_alive and not self.is_paused


_node: ContextVar[Node | None] = ContextVar("node", default=None)


class Deadlock(Exception):
    """Nothing is ready and no timer is set, so that nothing can happen any more."""


class _OrderedFuture(asyncio.Future[Any]):
    """A future whose place in a set does not depend on its address."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        super().__init__(loop=loop)
        self._serial = next(_serial)

    def __hash__(self) -> int:
        return self._serial

    def __eq__(self, other: object) -> bool:
        return self is other


class _OrderedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._serial = next(_serial)
        super().__init__(*arguments, **keywords)

    def __hash__(self) -> int:
        return self._serial

    def __eq__(self, other: object) -> bool:
        return self is other


class _Handle(events.Handle):
    """A callback that runs if its node may run."""

    def _run(self) -> None:
        node = self._context.get(_node)
        if node is None or node.may_run(self):
            super()._run()


class _TimerHandle(events.TimerHandle):
    """A timer that fires if its node may run."""

    def _run(self) -> None:
        node = self._context.get(_node)
        if node is None or node.may_run(self):
            super()._run()


class _Selector:
    """Stands for the wait of the loop."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout_s: float | None) -> list[Any]:
        if timeout_s is None:
            raise Deadlock("no callback is ready and no timer is set")
        self._loop.now_s += max(timeout_s, 0.0)
        return []

    def close(self) -> None:
        pass

    def get_map(self) -> dict[Any, Any]:
        return {}


@contextmanager
def noted_exceptions(noted: list[str]) -> Iterator[None]:
    """Note each exception that a broker logs and survives, except those of the disks."""
    log_exception = Logger.exception

    def note(logger: Logger, event: str, **fields: object) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError | KafkaError):
            noted.append(f"{event}: {error!r}")
        log_exception(logger, event, **fields)

    with mock.patch.object(Logger, "exception", note):
        yield


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs callbacks on virtual time; the same seed gives the same order."""

    _ready: deque[events.Handle]  # of BaseEventLoop

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.now_s = START_S
        self.rng = rng
        self.trace = Trace(self)
        self.network = Network(self, rng)
        #: Tasks of killed nodes: collected as garbage, they would run their `finally` blocks.
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_max = 1_000  #: before those that are done are dropped
        self._selector = _Selector(self)
        self._clock_resolution = 1e-9
        self.set_exception_handler(self._on_exception)
        self.errors: list[str] = []
        self.stalled_share = 0.0  #: share of the functions for threads that take long

    def _on_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.errors.append(f"{context['message']}: {error!r}")
        logging.getLogger("sim").error("%s", context["message"], exc_info=error)

    # Nodes

    def run_on(self, node: Node | None, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function as the node; the tasks that it creates belong to the node."""
        context = copy_context()
        context.run(_node.set, node)
        return context.run(function, *arguments)

    @property
    def node(self) -> Node | None:
        """The node whose callback runs."""
        return _node.get()

    @property
    def node_name(self) -> str:
        """The name of the node whose callback runs; empty if it belongs to none."""
        node = _node.get()
        return "" if node is None else node.name

    def resume(self, node: Node) -> None:
        """Let a paused node run again: first what was due meanwhile."""
        node.is_paused = False
        self._ready.extend(node.delayed)
        node.delayed.clear()

    # The interface of an event loop

    def time(self) -> float:
        return self.now_s

    def create_future(self) -> asyncio.Future[Any]:
        return _OrderedFuture(self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> Any:
        task = _OrderedTask(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_max:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._tasks_max = 2 * len(self._tasks) + 1_000
        return task

    def _call_soon(self, callback: Any, args: Any, context: Context | None) -> events.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        self._check_closed()
        timer = _TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> events.Handle:
        return self.call_soon(callback, *args, context=context)

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run the function later, between two callbacks."""
        future = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        is_stalled = self.rng.random() < self.stalled_share
        self.call_later(self.rng.uniform(*(STALLED_S if is_stalled else THREAD_S)), run)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        return self.network.listen(
            protocol_factory, host or "0.0.0.0", port or 0, is_serving=options.get("start_serving", True)
        )

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        return await self.network.connect(protocol_factory, host, port)
