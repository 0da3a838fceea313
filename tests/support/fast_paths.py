"""Two nodes side by side, one without fast paths: both must behave the same."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

from barnabas.api.context import RequestContext
from barnabas.api.dispatch import RequestRejectedError
from support.nodes import RunningNode, running_node

Prepare: TypeAlias = Callable[[RunningNode], Awaitable[None]]


class Pair:
    """Two equal nodes; an interceptor disables the fast paths of the second."""

    def __init__(self, directory: Path, prepare: Prepare, **overrides: str) -> None:
        self.runner = asyncio.Runner()
        self.directories = [directory / "fast", directory / "decoding"]
        self.answered_in_turn_count = 0  #: requests that the fast path completed without a wait
        self.stack = AsyncExitStack()
        self.runner.run(self._start(prepare, overrides))

    async def _start(self, prepare: Prepare, overrides: Mapping[str, str]) -> None:
        for directory in self.directories:
            directory.mkdir()
        self.fast, self.decoding = [
            await self.stack.enter_async_context(running_node(directory, **overrides))
            for directory in self.directories
        ]
        for node in (self.fast, self.decoding):
            await prepare(node)
        self.decoding.dispatcher.interceptor = _handle

    def close(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    def outcomes(self, frame: bytes) -> tuple[object, object]:
        """Return each node's response, or the reason why it rejected the request."""
        return self.runner.run(self._outcome(self.fast, frame)), self.runner.run(
            self._outcome(self.decoding, frame)
        )

    async def _outcome(self, node: RunningNode, frame: bytes) -> object:
        try:
            context, answer = node.begin(frame)
        except RequestRejectedError as refused:
            return "refused", refused.response
        if isinstance(answer, Coroutine):
            parts = await answer
        else:
            self.answered_in_turn_count += 1
            parts = answer
        return None if parts is None else b"".join(parts), context.close_after

    def files(self) -> list[dict[str, bytes]]:
        """Return each node's log and index files."""
        return [
            {
                str(path.relative_to(directory)): path.read_bytes()
                for path in directory.glob("*/*")
                if path.suffix in (".log", ".index", ".timeindex")
            }
            for directory in self.directories
        ]


async def _handle(context: RequestContext, request: Any) -> Any:
    return await context.api.handle(context, request)
