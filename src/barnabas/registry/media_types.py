"""Content types of the REST API, and which of them a client accepts (RFC 9110, 12.5.1)."""

#: Those of Confluent's API, the preferred one first.
MEDIA_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
#: Accepted in requests, too.
GENERIC_MEDIA_TYPE = "application/octet-stream"


def accepted_type(accept: str) -> str | None:
    """Return the content type of the response for an Accept header; None if the client accepts none of them."""
    if not accept.strip():
        return MEDIA_TYPES[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    weighed = [
        (max((weight for pattern, weight in ranges if _admits(pattern, kind)), default=0.0), -index, kind)
        for index, kind in enumerate(MEDIA_TYPES)
    ]
    weight, _, kind = max(weighed)
    return kind if weight > 0 else None


def _range(part: str) -> tuple[str, float]:
    """Return a media range and its weight; a malformed weight is the lowest."""
    pattern, *parameters = (word.strip().lower() for word in part.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return pattern, float(parameter[2:])
            except ValueError:
                return pattern, 0.001
    return pattern, 1.0


def _admits(pattern: str, kind: str) -> bool:
    if pattern in ("*", "*/*", kind):
        return True
    main, _, sub = pattern.partition("/")
    return (main == "*" and bool(sub)) or (sub == "*" and kind.startswith(f"{main}/"))
