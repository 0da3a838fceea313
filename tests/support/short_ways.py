"""Two nodes side by side, of which one takes the short ways of `api.short_way`: what they do must be the same."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

from barnabas.api.dispatch import Refused
from barnabas.wire.framing import FrameReader
from support.nodes import RunningNode, running_node

Prepare: TypeAlias = Callable[[RunningNode], Awaitable[None]]


class Pair:
    """Two nodes alike: one may take the short way, the other never does."""

    def __init__(self, directory: Path, prepare: Prepare) -> None:
        self.runner = asyncio.Runner()
        self.directories = [directory / "short", directory / "long"]
        self.taken_count = 0
        self.longest_run_count = 0
        self.stack = AsyncExitStack()
        self.runner.run(self._start(prepare))

    async def _start(self, prepare: Prepare) -> None:
        for directory in self.directories:
            directory.mkdir()
        self.short, self.long = [
            await self.stack.enter_async_context(running_node(directory)) for directory in self.directories
        ]
        for node in (self.short, self.long):
            await prepare(node)

    def close(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    def outcomes(self, frame: bytes) -> tuple[object, object]:
        """What becomes of a frame on either node."""
        short, long = self.outcomes_together(frame)
        return short[0], long[0]

    def outcomes_together(self, *frames: bytes) -> tuple[list[object], list[object]]:
        """What becomes, on either node, of frames that arrive in one turn."""
        return (
            self.runner.run(self._by_any_way(frames)),
            [self.runner.run(_the_long_way(self.long, frame)) for frame in frames],
        )

    async def _by_any_way(self, frames: Sequence[bytes]) -> list[object]:
        data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
        reader = FrameReader(bytearray(data), len(data))
        reader.received(len(data))
        outcomes: list[object] = []
        while len(outcomes) < len(frames):
            answers, count = self.short.dispatcher.answer_at_once(reader, self.short.short_ways)
            outcomes += split(answers)
            self.taken_count += count
            self.longest_run_count = max(self.longest_run_count, count)
            assert len(outcomes) <= len(frames)
            frame = reader.next_frame()
            if frame is not None:
                outcomes.append(await _the_long_way(self.short, bytes(frame)))
        return outcomes

    def files(self) -> list[dict[str, bytes]]:
        """What stands in the log and index files of either node."""
        return [
            {
                str(path.relative_to(directory)): path.read_bytes()
                for path in directory.glob("*/*")
                if path.suffix in (".log", ".index", ".timeindex")
            }
            for directory in self.directories
        ]


def split(answers: bytes) -> list[object]:
    """Single answers, size included, out of joined ones."""
    single: list[object] = []
    while answers:
        size_bytes = 4 + int.from_bytes(answers[:4], "big")
        single.append(answers[:size_bytes])
        answers = answers[size_bytes:]
    return single


async def _the_long_way(node: RunningNode, frame: bytes) -> object:
    try:
        return await node.send_the_long_way(frame)
    except Refused as error:
        return str(error)
