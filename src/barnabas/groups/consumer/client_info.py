"""The client of a request to a group."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


def _all(names: Iterable[str]) -> set[str]:
    return set(names)


@dataclass(frozen=True, slots=True)
class Caller:
    """What a request reveals about a member, beside its fields."""

    client_id: str
    client_host: str  #: in Kafka's form, with a slash before the address
    api_version: int
    #: returns those topics that the principal may describe
    visible_topics: Callable[[Iterable[str]], set[str]] = _all
