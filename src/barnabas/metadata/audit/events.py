"""Published audit events: one for each key that has changed, and one for each change that was refused."""

import enum
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from barnabas.metadata.audit.records import Actor, AuditRecord, PolicyResult
from barnabas.metadata.audit.refusals import shortened_actor
from barnabas.wire.errors import ErrorCode

#: Length to which a text or value is cut in an event that is too large.
SHORTENED_LENGTH = 200


class AuditOutcome(enum.StrEnum):
    CHANGED = "changed"
    REFUSED = "refused"
    WARNED = "warned"  #: changed, despite a violation of a policy in mode `warn`


class EventSequence(NamedTuple):
    """The position of an event among all events; the events of one transaction have the same revision of the store."""

    revision: int
    number: int


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event; `time` in ms since the epoch. `error` and `message` describe the refusal or the warning."""

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
    policy: PolicyResult | None = None  #: None if no policy was evaluated

    @property
    def sequence(self) -> EventSequence:
        return EventSequence(self.revision, self.number)

    @property
    def is_well_formed(self) -> bool:
        """Whether the fields have the right types: a client with WRITE on the topic can write anything."""
        numbers = (self.revision, self.number, self.time)
        names = (self.principal, self.client_host, self.api, self.resource)
        return all(type(number) is int for number in numbers) and all(isinstance(name, str) for name in names)

    def to_json(self) -> bytes:
        """Return the value of the event's record in the topic."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    def shortened(self) -> "AuditEvent":
        """Return a copy with long texts and values cut, and their length appended, so that it fits into a record."""
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
        """Parse the event from a record's value; unknown fields are ignored.

        :raises ValueError: If the value is not an audit event.
        """
        try:
            fields = json.loads(value)
            known = {name: fields[name] for name in AuditEvent.__slots__ if name in fields}
            event = AuditEvent(**known | {"outcome": AuditOutcome(fields["outcome"])})
        except (TypeError, KeyError, RecursionError) as error:
            raise ValueError(_format_error(value)) from error
        if not event.is_well_formed:
            raise ValueError(_format_error(value))
        return event


def _format_error(value: bytes) -> str:
    return f"not an audit event: {value[:100]!r}"


def _shortened(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= SHORTENED_LENGTH:
        return value
    return f"{text[:SHORTENED_LENGTH]}... ({len(text)} characters)"


def events_of(revision: int, record: AuditRecord) -> Iterator[AuditEvent]:
    """Yield the events of an audit record that was committed at `revision`, in order."""
    common = _common(record.time_ms, record.actor)
    number = 0
    for difference in record.differences:
        result = record.policy_results.get(difference.resource)
        yield AuditEvent(revision, number, *common, AuditOutcome.CHANGED, *difference, policy=result)
        number += 1
    of_refused = _common(record.time_ms, shortened_actor(record.actor))
    for audit_outcome, fields, refusals in (
        (AuditOutcome.REFUSED, of_refused, record.refusals),
        (AuditOutcome.WARNED, common, record.warnings),
    ):
        for resource, error, message in refusals:
            result = _policy_result(audit_outcome, error)
            yield AuditEvent(
                revision,
                number,
                *fields,
                audit_outcome,
                resource,
                error=error,
                message=message,
                policy=result,
            )
            number += 1


def _common(time_ms: int, actor: Actor) -> tuple[int, str, str | None, str, str]:
    """Return the fields from `time` to `api`."""
    return time_ms, actor.principal, actor.client_id, actor.client_host, actor.api


def _policy_result(audit_outcome: AuditOutcome, error: str) -> PolicyResult | None:
    if audit_outcome is AuditOutcome.WARNED:
        return PolicyResult.WARNED
    return PolicyResult.REFUSED if error == ErrorCode.POLICY_VIOLATION.name else None
