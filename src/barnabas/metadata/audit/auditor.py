"""Writes down who changes what, in the transaction that changes it, and who wanted to and may not."""

import random
from collections.abc import Iterable, Mapping

from barnabas.base.clock import Clock
from barnabas.metadata.audit.changes import differences
from barnabas.metadata.audit.records import (
    AUDIT,
    NO_VERDICTS,
    Actor,
    AuditRecord,
    Difference,
    PolicyResult,
    Refusal,
)
from barnabas.metadata.audit.stored_history import history_records_for
from barnabas.metadata.decision import Decision, ResponseT
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange

_ID_BYTES = 8

#: Records in the store from which on refusals are not written down: nobody publishes them now, and who may change
#: nothing must not fill the store.
WAITING_COUNT_MAX = 10_000

#: The same refusal of the same client is written down once in so long: who asks for ever must not fill the audit.
REPEATED_MS = 60_000
#: Refusals that are remembered for that; beyond, all are forgotten.
REMEMBERED_COUNT_MAX = 10_000


class Auditor:
    """Adds to a change its record and what it replaces; one that makes no difference to people has no record."""

    def __init__(self, clock: Clock, dice: random.Random) -> None:
        self._clock = clock
        self._dice = dice
        self._told_ms: dict[tuple[Actor, Refusal], int] = {}

    def recorded(
        self,
        image: MetadataImage,
        decision: Decision[ResponseT],
        actor: Actor | None,
        verdicts: Mapping[str, PolicyResult] = NO_VERDICTS,
    ) -> Decision[ResponseT]:
        """The decision with what it replaces and, of an actor, its record.

        It rests on all that it changes then, so that what stands there as it was before is what was there.
        """
        now_ms = self._clock.wall_ms()
        added = list(history_records_for(image, decision.changes, now_ms))
        if actor is not None and (found := tuple(differences(image, decision.changes))):
            added.append(self._put(AuditRecord(now_ms, actor, found, verdicts=_of_these(verdicts, found))))
        if not added:
            return decision
        return Decision(
            decision.response,
            (*decision.changes, *added),
            {change.key: image.revision_of(change.key) for change in decision.changes} | dict(decision.reads),
        )

    def audit_refusals(
        self,
        actor: Actor,
        refusals: Iterable[Refusal],
        warnings: Iterable[Refusal] = (),
        differences: Iterable[Difference] = (),
    ) -> Decision[None]:
        """What writes down refusals but those told lately, what was let through with a warning, and differences.

        The differences are those of changes elsewhere than in the store.
        """
        record = AuditRecord(
            self._clock.wall_ms(),
            actor,
            differences=tuple(differences),
            refusals=[each for each in refusals if self._is_first_in_interval(actor, each)],
            warnings=tuple(warnings),
        )
        is_needed = record.differences or record.refusals or record.warnings
        return Decision(None, (self._put(record),) if is_needed else ())

    def _is_first_in_interval(self, actor: Actor, refusal: Refusal) -> bool:
        now_ms, key = self._clock.monotonic_ms(), (actor, refusal)
        told_ms = self._told_ms.get(key)
        if told_ms is not None and now_ms - told_ms < REPEATED_MS:
            return False
        if len(self._told_ms) >= REMEMBERED_COUNT_MAX:
            self._told_ms.clear()
        self._told_ms[key] = now_ms
        return True

    def _put(self, record: AuditRecord) -> StoreChange:
        return AUDIT.put(self._dice.randbytes(_ID_BYTES).hex(), record)


def _of_these(
    verdicts: Mapping[str, PolicyResult], found: Iterable[Difference]
) -> Mapping[str, PolicyResult]:
    """Those on resources that a change makes different."""
    changed = {each.resource for each in found}
    return {resource: verdict for resource, verdict in verdicts.items() if resource in changed}
