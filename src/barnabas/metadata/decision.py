"""Metadata changes in one way: decide, commit, and apply the commit when it is read back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from barnabas.metadata.store import NEVER, Prefix, StoreChange

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

    @property
    def is_repeatable(self) -> bool:
        """Whether the commit can be sent again, because it cannot be made a second time.

        The decision says so, or it changes a key on whose revision it depends. A key that must not exist does not
        count: it may be created, and removed again, before the second time. Nor does a prefix, because what depends
        on it does not depend on removals.
        """
        return self.is_idempotent or any(
            self.reads.get(change.key, NEVER) != NEVER and not isinstance(change.key, Prefix)
            for change in self.changes
        )
