"""How reports show progress: as their caller decides, for example on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

#: Called with a total number of offsets; yields a function that advances by offsets.
Progress: TypeAlias = Callable[[int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def no_progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show nothing."""
    yield lambda _: None
