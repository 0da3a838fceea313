"""Audit records: changes and refused changes, with the principal that requested them.

A record is stored by the same transaction as its change, and stays in the store until it is published.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.record_type import RecordType


@dataclass(frozen=True, slots=True)
class Actor:
    """The origin of a change: a request of a client, or the broker itself."""

    principal: str  #: `User:alice`
    client_id: str | None
    client_host: str  #: an address
    api: str  #: name of the request, such as CreateTopics


class Refusal(NamedTuple):
    """A change that was requested and refused."""

    resource: str
    error: str  #: name of the error code, such as POLICY_VIOLATION
    message: str


class PolicyResult(enum.StrEnum):
    """The result of the policies for a change."""

    PASSED = "passed"
    WARNED = "warned"  #: changed, despite a violation of a policy in mode `warn`
    REFUSED = "refused"


#: For changes for which no policy is configured.
NO_POLICY_RESULTS: Mapping[str, PolicyResult] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """The changes and refused changes of one request; times in ms since the epoch."""

    time_ms: int
    actor: Actor
    differences: Sequence[Difference] = ()
    refusals: Sequence[Refusal] = ()
    #: violations of policies in mode `warn`
    warnings: Sequence[Refusal] = ()
    #: by resource; without those for which no policy was evaluated
    policy_results: Mapping[str, PolicyResult] = field(default_factory=lambda: NO_POLICY_RESULTS)


def _to_plain(record: AuditRecord) -> Any:
    actor = record.actor
    return {
        "time": record.time_ms,
        "principal": actor.principal,
        "client_id": actor.client_id,
        "client_host": actor.client_host,
        "api": actor.api,
        "differences": [list(entry) for entry in record.differences],
        "refusals": [list(entry) for entry in record.refusals],
        "warnings": [list(entry) for entry in record.warnings],
        "policy_results": dict(record.policy_results),
    }


def _from_plain(plain: Any) -> AuditRecord:
    return AuditRecord(
        plain["time"],
        Actor(plain["principal"], plain["client_id"], plain["client_host"], plain["api"]),
        tuple(Difference(*entry) for entry in plain["differences"]),
        tuple(Refusal(*entry) for entry in plain["refusals"]),
        tuple(Refusal(*entry) for entry in plain["warnings"]),
        {resource: PolicyResult(result) for resource, result in plain["policy_results"].items()},
    )


#: unique id -> record; its revision is that of its changes
AUDIT: RecordType[AuditRecord] = RecordType("audit", _to_plain, _from_plain)
