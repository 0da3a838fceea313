"""Names of resources in the audit, declared states and the command line: type and name, as `topic/orders`."""

from collections.abc import Iterable
from urllib.parse import quote, unquote

#: What the audit, declared states, the command line and the console show instead of a secret value.
HIDDEN = "(hidden)"


def resource_name(kind: str, name: str, *, prefixed: bool = False) -> str:
    """Return the name of one resource, or of all with a prefix: `topic/ord*`. `kind` is Kafka's word, in any case."""
    return f"{kind.lower().replace('_', '-')}/{name}{'*' if prefixed else ''}"


def quota_entity(resource: str) -> tuple[tuple[str, str | None], ...] | None:
    """Return the entity that `quota_resource` names so; None for another kind of resource."""
    kind, _, parts = resource.partition("/")
    if kind != "quota":
        return None
    split = [part.partition("=") for part in parts.split(",")]
    return tuple((entity_type, unquote(name) if equals else None) for entity_type, equals, name in split)


def quota_resource(entity: Iterable[tuple[str, str | None]]) -> str:
    """Return the name of an entity with quotas, `quota/user=alice,client-id`; parts are quoted as in URLs."""
    return "quota/" + ",".join(
        kind if name is None else f"{kind}={quote(name, safe='')}" for kind, name in entity
    )
