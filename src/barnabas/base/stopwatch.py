"""Measures how long this thread works on something that waits in between."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

ResultT = TypeVar("ResultT")


class Stopwatch(Generic[ResultT]):
    """Awaits `work` step by step and adds up the time of its steps, without the waits."""

    def __init__(self, work: Awaitable[ResultT], clock_ns: Callable[[], int]) -> None:
        self._work = work
        self._clock_ns = clock_ns
        self.elapsed_ns = 0

    def __await__(self) -> Generator[Any, Any, ResultT]:
        steps = self._work.__await__()
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            started_ns = self._clock_ns()
            try:
                awaited = steps.send(sent) if thrown is None else steps.throw(thrown)
            except StopIteration as done:
                result: ResultT = done.value
                return result
            finally:
                self.elapsed_ns += self._clock_ns() - started_ns
            try:
                sent, thrown = (yield awaited), None
            except BaseException as error:  # the work may catch it and continue
                thrown = error
