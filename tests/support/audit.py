"""Events of the audit as consumers find them."""

from typing import Any

from barnabas.metadata.audit.events import AuditEvent
from barnabas.metadata.topics import AUDIT_TOPIC
from barnabas.testing import EmbeddedBroker
from support.waiting import until

#: What makes a broker keep the audit.
AUDITED = {"barnabas.audit.enable": "true"}


def events(broker: EmbeddedBroker) -> list[AuditEvent]:
    """All that have been published, in order."""
    [topic] = broker.client.admin.describe_topics([AUDIT_TOPIC]).values()
    if isinstance(topic, Exception):
        return []
    return [AuditEvent.from_json(record.value or b"") for record in broker.records(AUDIT_TOPIC)]


def changes(broker: EmbeddedBroker, resource: str) -> list[tuple[str | None, Any, Any]]:
    """(key, before, after) of what is published of a resource."""
    return [(each.key, each.before, each.after) for each in events(broker) if each.resource == resource]


def published(broker: EmbeddedBroker, resource: str, key: str, after: Any) -> None:
    """Wait until a key's last change has this outcome."""

    def is_there() -> bool:
        found = [each for each in changes(broker, resource) if each[0] == key]
        return bool(found) and found[-1][2] == after

    until(is_there)
