"""Locations of data: a path on this machine, or a URL in an object store."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Scheme of a URL, and the scheme under which the location is shown.
_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az"}


class LocationError(ValueError):
    """A location or a store option that is not valid."""


@dataclass(frozen=True)
class ObjectLocation:
    """A prefix in a bucket of an object store; in Azure, buckets are called containers."""

    scheme: str  #: s3, gs or az
    bucket: str
    prefix: str = ""  #: neither begins nor ends with a slash

    def __str__(self) -> str:
        return "/".join(filter(None, (f"{self.scheme}://{self.bucket}", self.prefix)))

    def __truediv__(self, name: str) -> "ObjectLocation":
        return ObjectLocation(self.scheme, self.bucket, "/".join(filter(None, (self.prefix, name))))


Location = Path | ObjectLocation


def parse_location(text: str) -> Location:
    """Parse a path, or a URL: `s3://bucket/prefix`, `gs://`, `az://container/prefix` or `file:///path`.

    The characters of a prefix are those of the objects' names; only in `file://` URLs are %-escapes decoded.

    :raises LocationError: The URL is not valid.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme.replace("+", "").isalnum():
        if not text:
            raise LocationError("a location must not be empty")
        return Path(text)
    if scheme.lower() == "file":
        return _local(text)
    name = _SCHEMES.get(scheme.lower())
    if name is None:
        raise LocationError(
            f"location {_shown(text)}: must be a path, or begin with s3://, gs://, az:// or file://"
        )
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket:
        message = f"location {_shown(text)}: must not contain credentials; set them in the environment"
        raise LocationError(message)
    if not bucket or set(bucket) & set(" ?#:%"):
        raise LocationError(f"location {_shown(text)}: '{bucket}' is not the name of a bucket")
    if set(prefix) & set("?#"):
        raise LocationError(f"location {_shown(text)}: must not contain ? or #")
    parts = prefix.strip("/").split("/")
    if parts != [""] and {"", ".", ".."} & set(parts):
        raise LocationError(f"location {_shown(text)}: must not contain empty parts, . or ..")
    return ObjectLocation(name, bucket, "/".join(parts))


def _local(text: str) -> Path:
    url = urlsplit(text)
    if url.netloc not in ("", "localhost") or not url.path or url.query or url.fragment:
        raise LocationError(f"location {_shown(text)}: a file URL must have the form file:///path")
    return Path(unquote(url.path))


def _shown(text: str) -> str:
    """Return a URL without credentials and without a query, which may have some, too."""
    scheme, separator, rest = text.partition("?")[0].partition("://")
    return scheme + separator + rest.rpartition("@")[2]
