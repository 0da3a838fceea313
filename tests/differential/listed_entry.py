"""One intended difference, and reasons that several of them share."""

from collections.abc import Callable
from dataclasses import dataclass

from differential.compare import Difference
from differential.sequences import Step

ANYWHERE = "(anywhere)"
EXCEPTION = "Kafka fails with an unexpected exception; Barnabas returns that the request is not valid."
MORE = "Kafka returns no message; Barnabas explains the error."


@dataclass(frozen=True)
class Listed:
    """A field in which Barnabas differs on purpose."""

    api: str
    path: str
    condition: str  #: description of the condition
    reason: str
    applies: Callable[[Difference], bool]
    #: requests of which the last shows the difference at this version
    example: tuple[Step, ...]
    is_costly: bool = False  #: whether Kafka is unusable for a while after the example

    def allows(self, difference: Difference) -> bool:
        """Whether the difference is this one, at the path or below it."""
        same_position = self.path == ANYWHERE or f"{difference.path}.".startswith(f"{self.path}.")
        return difference.api == self.api and same_position and self.applies(difference)


def is_at(*parts: str) -> Callable[[Difference], bool]:
    """Whether a path contains one of `parts`."""
    return lambda difference: any(part in difference.at for part in parts)
