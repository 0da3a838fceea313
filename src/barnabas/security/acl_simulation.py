"""Makes recorded decisions again with other ACLs, by the authorizer itself."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.clock import SystemClock
from barnabas.metadata.acls import acl_key
from barnabas.security.acl_use import AclUseRecord
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.wire.acls import AclBinding, AclDecision, DecisionRecord


class Simulation(NamedTuple):
    """The decisions that would change."""

    refused: list[AclDecision]  #: were allowed
    allowed: list[AclDecision]  #: were refused


def simulate(record: DecisionRecord, acls: Iterable[AclBinding]) -> Simulation:
    """Return which decisions would be others if these were all ACLs."""
    authorizer = StandardAuthorizer(
        {acl_key(acl): acl for acl in acls},
        record.super_users,
        allow_if_no_acl=record.allows_if_no_acl,
        clock=SystemClock(),
        use=AclUseRecord.empty(0),
    )
    changed = [
        decision
        for decision in sorted(record.decisions, key=_order)
        if _is_allowed(authorizer, decision) != decision.is_allowed
    ]
    return Simulation(
        [decision for decision in changed if decision.is_allowed],
        [decision for decision in changed if not decision.is_allowed],
    )


def _is_allowed(authorizer: StandardAuthorizer, decision: AclDecision) -> bool:
    about = decision.principal, decision.host, decision.operation, decision.resource_type
    if decision.name is None:
        return authorizer.known_any(*about)
    return authorizer.known(*about, decision.name)


def _order(decision: AclDecision) -> tuple[object, ...]:
    """By principal and resource, as people read them."""
    return (
        decision.principal,
        decision.resource_type,
        decision.name or "",
        decision.operation,
        decision.host,
    )
