"""Audit events as consumers of the audit topic read them."""

from typing import Any

from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.metadata.audit.events import AuditEvent
from barnabas.testing import EmbeddedBroker
from support.waiting import until

#: Settings of a broker that keeps an audit.
AUDITED = {"barnabas.audit.enable": "true"}


def events(broker: EmbeddedBroker) -> list[AuditEvent]:
    """Return all published events in order."""
    [topic] = broker.client.admin.describe_topics([AUDIT_TOPIC]).values()
    if isinstance(topic, Exception):
        return []
    return [AuditEvent.from_json(record.value or b"") for record in broker.records(AUDIT_TOPIC)]


def changes(broker: EmbeddedBroker, resource: str) -> list[tuple[str | None, Any, Any]]:
    """Return (key, before, after) of each published change of a resource."""
    return [(each.key, each.before, each.after) for each in events(broker) if each.resource == resource]


def published(broker: EmbeddedBroker, resource: str, key: str, after: Any) -> None:
    """Wait until the last published value of a key is `after`."""

    def has_value() -> bool:
        found = [each for each in changes(broker, resource) if each[0] == key]
        return bool(found) and found[-1][2] == after

    until(has_value)
