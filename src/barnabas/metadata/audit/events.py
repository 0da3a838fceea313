"""What is published of the audit: one event for each key that has changed, and for each change that was refused."""

import enum
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from barnabas.metadata.audit.records import AuditRecord, PolicyResult
from barnabas.wire.errors import ErrorCode

#: What is left of a text or value in an event that is too large.
SHORTENED_LENGTH = 200


class AuditOutcome(enum.StrEnum):
    """What became of what somebody wanted."""

    CHANGED = "changed"
    REFUSED = "refused"
    WARNED = "warned"  #: changed, though a policy in mode `warn` says no


class EventSequence(NamedTuple):
    """Where an event stands among all: events of one transaction have one revision of the store."""

    revision: int
    number: int


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event; `time` in ms since the epoch. `error` and `message` are of what was refused, or should have been."""

    revision: int
    number: int
    time: int
    principal: str
    client_id: str | None
    client_host: str
    api: str
    outcome: AuditOutcome
    resource: str
    key: str | None = None
    before: Any = None
    after: Any = None
    error: str | None = None
    message: str | None = None
    policy: PolicyResult | None = None  #: None where no policy was asked

    @property
    def sequence(self) -> EventSequence:
        """Where it stands."""
        return EventSequence(self.revision, self.number)

    @property
    def is_well_formed(self) -> bool:
        """Whether numbers are numbers, and names texts: whoever may write to the topic may write anything."""
        numbers = (self.revision, self.number, self.time)
        names = (self.principal, self.client_host, self.api, self.resource)
        return all(type(each) is int for each in numbers) and all(isinstance(each, str) for each in names)

    def to_json(self) -> bytes:
        """The value of its record in the topic."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    def shortened(self) -> "AuditEvent":
        """With the beginnings of what is long, and how long it is: so that it fits into a record."""
        return replace(
            self,
            principal=_shortened(self.principal),
            resource=_shortened(self.resource),
            key=_shortened(self.key),
            before=_shortened(self.before),
            after=_shortened(self.after),
            message=_shortened(self.message),
        )

    @staticmethod
    def from_json(value: bytes) -> "AuditEvent":
        """The event of a record's value; fields of later versions are passed over.

        :raises ValueError: When it is none.
        """
        try:
            fields = json.loads(value)
            known = {name: fields[name] for name in AuditEvent.__slots__ if name in fields}
            event = AuditEvent(**known | {"outcome": AuditOutcome(fields["outcome"])})
        except (TypeError, KeyError, RecursionError) as error:
            raise ValueError(_no_event(value)) from error
        if not event.is_well_formed:
            raise ValueError(_no_event(value))
        return event


def _no_event(value: bytes) -> str:
    return f"this is no event of the audit: {value[:100]!r}"


def _shortened(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= SHORTENED_LENGTH:
        return value
    return f"{text[:SHORTENED_LENGTH]}... ({len(text)} characters)"


def events_of(revision: int, record: AuditRecord) -> Iterator[AuditEvent]:
    """The events of a record that the store has since `revision`, in order."""
    actor = record.actor
    who = (record.time_ms, actor.principal, actor.client_id, actor.client_host, actor.api)
    number = 0
    for each in record.differences:
        verdict = record.verdicts.get(each.resource)
        yield AuditEvent(revision, number, *who, AuditOutcome.CHANGED, *each, policy=verdict)
        number += 1
    for outcome, refusals in (
        (AuditOutcome.REFUSED, record.refusals),
        (AuditOutcome.WARNED, record.warnings),
    ):
        for resource, error, message in refusals:
            verdict = _verdict(outcome, error)
            yield AuditEvent(
                revision, number, *who, outcome, resource, error=error, message=message, policy=verdict
            )
            number += 1


def _verdict(outcome: AuditOutcome, error: str) -> PolicyResult | None:
    if outcome is AuditOutcome.WARNED:
        return PolicyResult.WARNED
    return PolicyResult.REFUSED if error == ErrorCode.POLICY_VIOLATION.name else None
