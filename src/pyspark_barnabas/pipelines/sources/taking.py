"""Takes again and again while a flow runs, in a thread of its own: a slow database holds up no other flow."""

from collections.abc import Callable
from threading import Event, Thread

_UNITS_S = {
    "millisecond": 0.001,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 604_800.0,
}


def interval_s(text: str) -> float:
    """A duration such as "10 seconds", in seconds."""
    count, _, unit = text.partition(" ")
    return int(count) * _UNITS_S[unit.removesuffix("s")]


class Taking:
    """Runs until it is stopped, or the first error."""

    def __init__(self, take: Callable[[], object], every_s: float) -> None:
        self._take = take
        self._every_s = every_s
        self._ending = Event()
        self._thread = Thread(target=self._run, name="barnabas-taking", daemon=True)
        self.error: Exception | None = None  #: why nothing more is taken
        self._thread.start()

    def stop(self) -> None:
        """Returns when a take that is under way is done."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(self._every_s):
            try:
                self._take()
            except Exception as error:  # told where the flow is looked after
                self.error = error
                return
