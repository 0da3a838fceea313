"""Reads from a database in its own thread, so that a slow one delays no other flow."""

from collections.abc import Callable
from threading import Event, Thread

#: A take may be between two of Spark's jobs when it is cancelled, so it is cancelled repeatedly.
_CANCEL_EVERY_S = 0.2
_UNITS_S = {
    "millisecond": 0.001,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 604_800.0,
}


def interval_s(text: str) -> float:
    """Return a duration such as "10 seconds", in seconds."""
    count, _, unit = text.partition(" ")
    return int(count) * _UNITS_S[unit.removesuffix("s")]


class Taking:
    """Reads immediately, and then at an interval, if given, until it is stopped or a take fails."""

    def __init__(
        self, take: Callable[[], object], every_s: float | None, cancel: Callable[[], object] = lambda: None
    ) -> None:
        self._take = take
        self._every_s = every_s
        self._cancel = cancel
        self._first_over = Event()
        self._ending = Event()
        self._thread = Thread(target=self._run, name="barnabas-taking", daemon=True)
        self.error: Exception | None = None  #: why it ended
        self._thread.start()

    @property
    def is_first_over(self) -> bool:
        """Whether the first take has ended, with or without success."""
        return self._first_over.is_set()

    def stop(self) -> None:
        """Cancel a running take, which leaves nothing behind, and wait for the thread."""
        self._ending.set()
        while self._thread.is_alive():
            self._cancel()
            self._thread.join(_CANCEL_EVERY_S)

    def _run(self) -> None:
        try:
            while True:
                self._take()
                self._first_over.set()
                if self._every_s is None or self._ending.wait(self._every_s):
                    return
        except Exception as error:  # reported with the flow's status
            if not self._ending.is_set():
                self.error = error
        finally:
            self._first_over.set()
