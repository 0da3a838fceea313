"""A plan: the changes that give a cluster the declared state, with diagnostics."""

import fnmatch
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from barnabas.base.clock import Clock
from barnabas.client.admin.admin import Admin
from barnabas.declared.checks import check_changes, with_lockout, with_own_user
from barnabas.declared.cluster_checks import (
    applicant,
    with_deleted_records,
    with_missing_secrets,
    with_refusals,
)
from barnabas.declared.diff import ChangeAction, Level, ResourceChange, as_json, diff_states
from barnabas.declared.live import live_state_for
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import EVERYTHING, ClusterState, ResourceFilter, Section
from barnabas.wire.acls import ANONYMOUS_PRINCIPAL
from barnabas.wire.errors import ErrorCode

#: Errors of a controller for changes that it has already made. Brokers of Apache Kafka apply changes some milliseconds
#: later, so a plan made right after a change may contain it again.
_APPLIED_ALREADY = frozenset(
    {ErrorCode.INVALID_PARTITIONS, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)


@dataclass(frozen=True)
class Plan:
    """Changes, in the order of the file."""

    changes: Sequence[ResourceChange]

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of creations, alterations, deletions, and of changes that are destructive, a lockout or impossible."""
        counts = Counter[str](change.action.value for change in self.changes)
        counts["destructive"] = sum(change.is_destructive for change in self.changes)
        counts["lockout"] = sum(change.is_lockout for change in self.changes)
        counts["impossible"] = sum(change.level is Level.IMPOSSIBLE for change in self.changes)
        return counts

    def as_json(self) -> dict[str, Any]:
        words = (*ChangeAction, "destructive", "lockout", "impossible")
        summary = {str(word): self.counts[word] for word in words}
        return {"changes": [as_json(change) for change in self.changes], "summary": summary}


@dataclass(frozen=True)
class PlanRequest:
    """A declared state, or a chosen part of it, and the principal that applies it.

    `renew_password_patterns` are patterns of users' names, whose passwords are set again: stored passwords cannot be
    compared with those of the file.
    """

    declared: ClusterState
    secrets: Secrets
    principal: str | None = ANONYMOUS_PRINCIPAL  #: None if only the brokers know it
    resource_filter: ResourceFilter = EVERYTHING
    renew_password_patterns: tuple[str, ...] = field(default=())


async def make_plan(admin: Admin, request: PlanRequest, clock: Clock) -> Plan:
    """Return the changes that are needed now.

    :raises KafkaError: The error of a request that the cluster refused.
    """
    plan, _ = await admin.cluster.retry.until(
        lambda: _plan(admin, request, clock), lambda found: found[1].isdisjoint(_APPLIED_ALREADY)
    )
    return plan


class StateComparison(NamedTuple):
    """The selected parts of a declared and a live state, and the changes that turn the live one into the other."""

    declared: ClusterState
    live: ClusterState
    differences: list[ResourceChange]


async def compare_with_live(admin: Admin, request: PlanRequest) -> StateComparison:
    """Compare what a request declares with the state that the brokers have now."""
    declared = request.resource_filter.apply(request.declared)
    live = request.resource_filter.apply(await live_state_for(admin, declared))
    return StateComparison(declared, live, diff_states(declared, live))


async def _plan(admin: Admin, request: PlanRequest, clock: Clock) -> tuple[Plan, set[ErrorCode]]:
    """Return a plan from the state of the brokers, and the error codes of refusals."""
    declared, live, differences = await compare_with_live(admin, request)
    changes = [*differences, *_renewals(declared, live, request.renew_password_patterns)]
    if not changes:
        return Plan([]), set()
    changes = with_own_user(check_changes(sorted(changes, key=_section_position), live), request.principal)
    if any(change.section is Section.ACLS for change in changes):
        changes = with_lockout(changes, live, await applicant(admin, request.principal))
    changes = with_missing_secrets(changes, request.secrets)
    changes, refusals = await with_refusals(admin, changes, request.secrets)
    return Plan(await with_deleted_records(admin, changes, clock.wall_ms())), refusals


_SECTION_POSITIONS = {section: position for position, section in enumerate(Section)}


def _section_position(change: ResourceChange) -> int:
    return _SECTION_POSITIONS[change.section]


def _renewals(declared: ClusterState, live: ClusterState, patterns: Sequence[str]) -> list[ResourceChange]:
    """Return the passwords of existing users to set again; the iterations stay unless declared."""
    return [
        ResourceChange(Section.USERS, user, mechanism.title, ChangeAction.ALTER, there, credential)
        for user, credentials in sorted(declared.users.items())
        if any(fnmatch.fnmatchcase(user, pattern) for pattern in patterns)
        for mechanism, credential in sorted(credentials.items())
        if (there := live.users.get(user, {}).get(mechanism))
        and credential.iterations in (None, there.iterations)
    ]
