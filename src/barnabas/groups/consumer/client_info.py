"""Who sends a request to a group."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


def _all(names: Iterable[str]) -> set[str]:
    return set(names)


@dataclass(frozen=True, slots=True)
class Caller:
    """What a request's connection tells of a member."""

    client_id: str
    client_host: str  #: as Kafka writes it: with a slash before the address
    api_version: int
    #: those of some topics that the principal may describe
    visible_topics: Callable[[Iterable[str]], set[str]] = _all
