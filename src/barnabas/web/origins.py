"""Which requests pages of other sites may have sent, by what browsers report."""

from collections.abc import Mapping

from barnabas.base.hosts import split_url

#: They change nothing, and a page cannot read responses of another site.
SAFE_METHODS = ("GET", "HEAD")


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a page of this host sent the request, or no page at all; names of headers are in lower case."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "same-origin") == "same-origin"
    parts = split_url(origin)
    return parts is not None and bool(parts.netloc) and parts.netloc == headers.get("host")
