"""Metadata changes in one way: decide, commit, and apply the commit when it is read back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from barnabas.metadata.store import StoreChange

ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True)
class Decision(Generic[ResponseT]):
    """The response to the client, the changes of the store, and the revisions that they depend on."""

    response: ResponseT
    changes: tuple[StoreChange, ...] = ()
    #: key -> revision that was read; the commit fails if it has changed
    reads: Mapping[str, int] = field(default_factory=dict)
    #: The commit may arrive twice: the second time it is refused, also if it only creates keys, or changes nothing.
    is_idempotent: bool = False
