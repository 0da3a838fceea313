"""A limit of the processor time that something takes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_time_limit(seconds: float = 20) -> Iterator[None]:
    """Interrupt what takes longer. The time of other processes does not count."""

    def interrupt(number: int, frame: object) -> None:
        message = f"it takes more than {seconds} s"
        raise AssertionError(message)

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
