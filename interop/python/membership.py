"""A member of a group beside the commands: it reads in a thread of its own until it leaves."""

import threading
from collections.abc import Callable
from typing import Any, Protocol

from interop.python.lines import PATIENCE_S, operation


class GroupConsumer(Protocol):
    """What a library's consumer is asked for, always by the same thread."""

    def read(self) -> list[str]:
        """The values that have come within a moment; commits are the library's business."""

    def owned(self) -> list[int]:
        """The partitions that it has been assigned."""

    def close(self) -> None:
        """Commit what has been read, and leave the group."""


class Member:
    """One consumer, which joins when it is made."""

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

    def tell(self) -> object:
        """What it has, or what went wrong."""
        if self.error is not None:
            raise self.error
        return {"partitions": self.partitions, "values": self.values, "assignments": self.assignments}

    def leave(self) -> None:
        """Wait until it has left."""
        self._leaving.set()
        self._thread.join(PATIENCE_S)
        self.tell()


def offer(connect: Callable[..., GroupConsumer]) -> None:
    """Offer the operations of a member; `connect` takes what `join_group` is given, and subscribes."""
    members: list[Member] = []

    @operation
    def join_group(**arguments: Any) -> None:
        members.append(Member(lambda: connect(**arguments)))

    @operation
    def membership() -> object:
        return members[-1].tell()

    @operation
    def leave_group() -> None:
        members.pop().leave()
