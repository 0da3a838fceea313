"""The audit's records: who changed what, or wanted to, from what to what.

A record lies in the store from the transaction on that it tells of, until it has been published.
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
    """Who changes something: a client by a request, or a broker by itself."""

    principal: str  #: `User:alice`
    client_id: str | None
    client_host: str  #: an address
    api: str  #: the request's name, as CreateTopics


class Refusal(NamedTuple):
    """A change that somebody wanted and did not get."""

    resource: str
    error: str  #: the name of its code: POLICY_VIOLATION
    message: str


class PolicyResult(enum.StrEnum):
    """What policies said to a change."""

    PASSED = "passed"
    WARNED = "warned"  #: it was made, though a policy in mode `warn` says no
    REFUSED = "refused"


#: Of a change that no policy was asked about.
NO_POLICY_RESULTS: Mapping[str, PolicyResult] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What one request has changed, and what of it was refused; times in ms since the epoch."""

    time_ms: int
    actor: Actor
    differences: Sequence[Difference] = ()
    refusals: Sequence[Refusal] = ()
    #: what policies in mode `warn` would have refused
    warnings: Sequence[Refusal] = ()
    #: by resource; nothing of those that no policy was asked about
    policy_results: Mapping[str, PolicyResult] = field(default_factory=lambda: NO_POLICY_RESULTS)


def _to_plain(record: AuditRecord) -> Any:
    actor = record.actor
    return {
        "time": record.time_ms,
        "principal": actor.principal,
        "client_id": actor.client_id,
        "client_host": actor.client_host,
        "api": actor.api,
        "differences": [list(each) for each in record.differences],
        "refusals": [list(each) for each in record.refusals],
        "warnings": [list(each) for each in record.warnings],
        "policy_results": dict(record.policy_results),
    }


def _from_plain(plain: Any) -> AuditRecord:
    return AuditRecord(
        plain["time"],
        Actor(plain["principal"], plain["client_id"], plain["client_host"], plain["api"]),
        tuple(Difference(*each) for each in plain["differences"]),
        tuple(Refusal(*each) for each in plain["refusals"]),
        tuple(Refusal(*each) for each in plain["warnings"]),
        {resource: PolicyResult(result) for resource, result in plain["policy_results"].items()},
    )


#: unique id -> record; the revision that wrote it is that of its changes
AUDIT: RecordType[AuditRecord] = RecordType("audit", _to_plain, _from_plain)
