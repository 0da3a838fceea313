"""Adds audit records to changes, in the transaction of the change, and writes audit records of refused changes."""

import random
from collections.abc import Iterable, Mapping, Sequence

from barnabas.base.clock import Clock
from barnabas.metadata.audit.changes import differences
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.history import history_records_for
from barnabas.metadata.audit.records import (
    AUDIT,
    NO_POLICY_RESULTS,
    Actor,
    AuditRecord,
    PolicyResult,
    Refusal,
)
from barnabas.metadata.audit.refusals import RefusalLimiter, of_left_out, shortened_actor
from barnabas.metadata.decision import Decision, ResponseT
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import Prefix, StoreChange

_ID_BYTES = 8

#: Unpublished audit records in the store from which on refused changes are not recorded: the audit publisher
#: is not running, and a client without permissions must not fill the store.
WAITING_COUNT_MAX = 10_000


class Auditor:
    """Adds the audit record and the replaced values to a change; a change without visible difference has no record."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._refusals = RefusalLimiter(clock)

    def with_audit_record(
        self,
        image: MetadataImage,
        decision: Decision[ResponseT],
        actor: Actor | None,
        policy_results: Mapping[str, PolicyResult] = NO_POLICY_RESULTS,
    ) -> Decision[ResponseT]:
        """Return the decision with the replaced values and, if there is an actor, its audit record.

        The preconditions then include every changed key, so that the recorded earlier values are the real ones.
        """
        now_ms = self._clock.wall_ms()
        added = list(history_records_for(image, decision.changes, now_ms))
        if actor is not None and (changed := tuple(differences(image, decision.changes))):
            record = AuditRecord(now_ms, actor, changed, policy_results=_results_for(policy_results, changed))
            added.append(self._put(record))
        if not added:
            return decision
        return Decision(
            decision.response,
            (*decision.changes, *added),
            {
                change.key: image.revision_of(change.key)
                for change in decision.changes
                if not isinstance(change.key, Prefix)  # the decision says on what a prefix depends
            }
            | dict(decision.reads),
            decision.is_idempotent,
        )

    def admitted(self, actor: Actor, refusals: Sequence[Refusal]) -> list[Refusal]:
        """Return the refused changes of a request that are to be recorded; what repeats or is too much is left out."""
        return self._refusals.admitted(actor, refusals)

    def audit_events(
        self,
        actor: Actor,
        refusals: Sequence[Refusal],
        warnings: Sequence[Refusal] = (),
        differences: Sequence[Difference] = (),
    ) -> Decision[None]:
        """Return the change that records refused changes, warnings, and differences outside the metadata store."""
        if not (refusals or warnings or differences):
            return Decision(None)
        if not warnings and not differences:
            actor = shortened_actor(actor)
        record = AuditRecord(
            self._clock.wall_ms(), actor, tuple(differences), refusals=refusals, warnings=tuple(warnings)
        )
        return Decision(None, (self._put(record),))

    def audit_left_out(self) -> list[Decision[None]]:
        """Return the changes that record how many refused changes were left out, each to be written separately."""
        return [
            self.audit_events(actor, [refusal])
            for actor, refusal in map(of_left_out, self._refusals.take_left_out())
        ]

    def _put(self, record: AuditRecord) -> StoreChange:
        return AUDIT.put(self._rng.randbytes(_ID_BYTES).hex(), record)


def _results_for(
    policy_results: Mapping[str, PolicyResult], differences: Iterable[Difference]
) -> Mapping[str, PolicyResult]:
    """Return the policy results for the resources that differ."""
    changed = {difference.resource for difference in differences}
    return {resource: result for resource, result in policy_results.items() if resource in changed}
