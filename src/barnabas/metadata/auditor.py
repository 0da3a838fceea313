"""Writes down who changes what, in the transaction that changes it."""

import random

from barnabas.base.clock import Clock
from barnabas.metadata.audit import AUDIT, Actor, AuditRecord
from barnabas.metadata.decision import Decision, ResponseT
from barnabas.metadata.differences import differences
from barnabas.metadata.image import Image

_ID_BYTES = 8


class Auditor:
    """Adds the record of a change to it; one that makes no difference to people has none."""

    def __init__(self, clock: Clock, dice: random.Random) -> None:
        self._clock = clock
        self._dice = dice

    def recorded(self, image: Image, decision: Decision[ResponseT], actor: Actor) -> Decision[ResponseT]:
        """The decision with its record.

        It rests on all that it changes then, so that what stands there as it was before is what was there.
        """
        found = tuple(differences(image, decision.changes))
        if not found:
            return decision
        record = AuditRecord(self._clock.wall_ms(), actor, found)
        return Decision(
            decision.response,
            (*decision.changes, AUDIT.put(self._dice.randbytes(_ID_BYTES).hex(), record)),
            {change.key: image.revision_of(change.key) for change in decision.changes} | dict(decision.reads),
        )
