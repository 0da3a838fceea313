"""One difference that is meant, and the reasons that come again and again."""

from collections.abc import Callable
from dataclasses import dataclass

from differential.compare import Difference
from differential.sequences import Step

ANYWHERE = "(anywhere)"
EXCEPTION = "Kafka fails with an unexpected exception; Barnabas returns that the request is not valid."
MORE = "Kafka returns no message; Barnabas explains the error."


@dataclass(frozen=True)
class Listed:
    """A field in which Barnabas means to differ."""

    api: str
    path: str
    condition: str  #: when it differs, for people
    reason: str
    applies: Callable[[Difference], bool]
    #: requests of which the last shows the difference, at the version given
    example: tuple[Step, ...]
    is_costly: bool = False  #: Kafka is of no use for a while after the example

    def allows(self, difference: Difference) -> bool:
        """Whether the difference is this one, at the path or below it."""
        same_place = self.path == ANYWHERE or f"{difference.path}.".startswith(f"{self.path}.")
        return difference.api == self.api and same_place and self.applies(difference)


def is_at(*parts: str) -> Callable[[Difference], bool]:
    """Whether a difference is at a place that holds one of `parts`."""
    return lambda difference: any(part in difference.at for part in parts)
