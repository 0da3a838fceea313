"""How the audit names what is changed: kind and name, as `topic/orders`."""


def resource_name(kind: str, name: str, *, prefixed: bool = False) -> str:
    """The name of one thing, or of all whose names begin so: `topic/ord*`. `kind` is Kafka's word, in any case."""
    return f"{kind.lower().replace('_', '-')}/{name}{'*' if prefixed else ''}"
