"""Decide now, apply when it comes back committed: the only shape in which cluster state changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from barnabas.metadata.store import StoreChange

ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True)
class Decision(Generic[ResponseT]):
    """What to tell the client, what would make it true, and what it rests on."""

    response: ResponseT
    changes: tuple[StoreChange, ...] = ()
    #: key -> the revision seen; the commit fails if one has moved
    reads: Mapping[str, int] = field(default_factory=dict)
