"""Names of resources in the audit, declared states and the command line: type and name, as `topic/orders`."""

from collections.abc import Iterable
from urllib.parse import quote

#: What the audit, declared states, the command line and the console show instead of a secret value.
HIDDEN = "(hidden)"


def resource_name(kind: str, name: str, *, prefixed: bool = False) -> str:
    """Return the name of one resource, or of all with a prefix: `topic/ord*`. `kind` is Kafka's word, in any case."""
    return f"{kind.lower().replace('_', '-')}/{name}{'*' if prefixed else ''}"


def quota_resource(entity: Iterable[tuple[str, str | None]]) -> str:
    """Return the name of an entity with quotas, `quota/user=alice,client-id`; parts are quoted as in URLs."""
    return "quota/" + ",".join(
        kind if name is None else f"{kind}={quote(name, safe='')}" for kind, name in entity
    )
