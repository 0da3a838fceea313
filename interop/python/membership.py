"""A group member beside the commands: it reads in a thread of its own until it leaves."""

import threading
from collections.abc import Callable
from typing import Any, Protocol

from interop.python.lines import PATIENCE_S, operation


class GroupConsumer(Protocol):
    """The interface of a library's consumer, always called by the same thread."""

    def read(self) -> list[str]:
        """Return the values that have arrived within a moment; the library commits."""

    def owned(self) -> list[int]:
        """Return the assigned partitions."""

    def close(self) -> None:
        """Commit, and leave the group."""


class Member:
    """One consumer, which joins when it is created."""

    def __init__(self, connect: Callable[[], GroupConsumer]) -> None:
        self.partitions: list[int] = []
        self.values: list[str] = []
        self.assignments: int | None = None
        self.error: Exception | None = None
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(connect,), daemon=True)
        self._thread.start()

    def _run(self, connect: Callable[[], GroupConsumer]) -> None:
        try:
            consumer = connect()
            while not self._leaving.is_set():
                self.values += consumer.read()
                self.partitions = sorted(consumer.owned())
                self.assignments = getattr(consumer, "assignments", None)
            consumer.close()
        except Exception as error:
            self.error = error

    def report(self) -> object:
        """Return its partitions and values, or its error."""
        if self.error is not None:
            raise self.error
        return {"partitions": self.partitions, "values": self.values, "assignments": self.assignments}

    def leave(self) -> None:
        """Wait until it has left."""
        self._leaving.set()
        self._thread.join(PATIENCE_S)
        self.report()


def offer(connect: Callable[..., GroupConsumer]) -> None:
    """Register the operations of a member; `connect` takes the arguments of `join_group`, and subscribes."""
    members: list[Member] = []

    @operation
    def join_group(**arguments: Any) -> None:
        members.append(Member(lambda: connect(**arguments)))

    @operation
    def membership() -> object:
        return members[-1].report()

    @operation
    def leave_group() -> None:
        members.pop().leave()
