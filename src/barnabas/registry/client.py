"""A client of a schema registry: Barnabas's, Confluent's, or another with the same REST API. It blocks."""

import base64
import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from barnabas.registry.errors import SCHEMA_NOT_FOUND, RegistryError
from barnabas.registry.parsing import parse_schema
from barnabas.registry.records import schema_of
from barnabas.registry.schemas import InvalidSchema, ParsedSchema, SchemaReference, SchemaText

_ACCEPT = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json; q=0.9, application/json; q=0.5"
_TIMEOUT_S = 10.0
_RESPONSE_BYTES_MAX = 64 * 1024 * 1024
_NOT_FOUND = 404
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500


class RegistryUnavailable(ConnectionError):
    """No registry responds, or not with the REST API, or it fails."""


class FetchedSchema(NamedTuple):
    """A schema with its id."""

    id: int
    schema: SchemaText


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirects, which would get the password as well."""

    def redirect_request(self, *args: Any, **further: Any) -> None:
        """Return that there is no request for the new address."""


class RegistryClient:
    """Requests to a registry by its URL, with the name and password in it if there are any."""

    def __init__(self, url: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        """:raises ValueError: If the URL is not valid."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = (
                f"'{_without_password(url)}' is not the URL of a registry, such as http://127.0.0.1:8081"
            )
            raise ValueError(message)
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))  #: without the password
        self._headers = {"Accept": _ACCEPT, **_authorization(parts.username, parts.password)}
        self._timeout_s = timeout_s
        self._opener = build_opener(_NoRedirects)

    def by_id(self, schema_id: int) -> FetchedSchema:
        """Return a schema.

        :raises RegistryError: If there is none with that id.
        :raises RegistryUnavailable: If the registry does not respond.
        """
        return FetchedSchema(schema_id, _schema_in(self._get(f"/schemas/ids/{schema_id}")))

    def version(self, subject: str, version: int | str = "latest") -> FetchedSchema:
        """Return a version of a subject, also a deleted one if it has a number.

        :raises RegistryError: If there is none.
        :raises RegistryUnavailable: If the registry does not respond.
        """
        deleted = "" if version == "latest" else "?deleted=true"
        entity = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}{deleted}")
        return FetchedSchema(int(entity["id"]), _schema_in(entity))

    def parsed(self, schema: SchemaText) -> ParsedSchema:
        """Parse a schema with its references.

        :raises InvalidSchema: If it is not valid.
        :raises RegistryError: If access is refused.
        :raises RegistryUnavailable: If the registry does not respond.
        """

        def lookup(reference: SchemaReference) -> SchemaText | None:
            try:
                return self.version(reference.subject, reference.version).schema
            except RegistryError as error:
                if error.status != _NOT_FOUND:
                    raise
                return None

        return parse_schema(schema, lookup)

    def dependencies(self, schema: SchemaText) -> dict[str, str]:
        """Return the texts of all references by name, those first that others refer to.

        :raises RegistryError: If one is missing.
        :raises RegistryUnavailable: If the registry does not respond.
        """
        texts: dict[str, str] = {}
        for reference in schema.references:
            found = self.version(reference.subject, reference.version).schema
            texts |= {name: text for name, text in self.dependencies(found).items() if name not in texts}
            texts.setdefault(reference.name, found.text)
        return texts

    def _get(self, path: str) -> Mapping[str, Any]:
        request = Request(f"{self.url}{path}", headers=self._headers)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                return self._object(response.read(_RESPONSE_BYTES_MAX))
        except HTTPError as error:
            raise self._refusal(error) from None
        except (URLError, OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            message = f"the schema registry at {self.url} does not respond: {reason}"
            raise RegistryUnavailable(message) from error

    def _refusal(self, error: HTTPError) -> Exception:
        try:
            body = json.loads(error.read(_RESPONSE_BYTES_MAX))
            refusal = RegistryError(int(body["error_code"]), str(body["message"]))
        except (ValueError, KeyError, TypeError, OSError):
            if error.code == _NOT_FOUND:
                return RegistryError(SCHEMA_NOT_FOUND, f"{self.url} has no such schema")
            return RegistryUnavailable(
                f"{self.url} responds with HTTP {error.code}: it is not a schema registry"
            )
        if error.code == _TOO_MANY_REQUESTS or error.code >= _SERVER_ERROR:
            return RegistryUnavailable(f"the schema registry at {self.url} fails: {refusal}")
        return refusal

    def _object(self, data: bytes) -> Mapping[str, Any]:
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            message = f"{self.url} does not respond as a schema registry does"
            raise RegistryUnavailable(message)
        return body


def _schema_in(entity: Mapping[str, Any]) -> SchemaText:
    try:
        return schema_of(entity)
    except (KeyError, ValueError, TypeError) as error:
        message = f"the schema of the registry cannot be used: {error}"
        raise InvalidSchema(message) from None


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _without_password(url: str) -> str:
    return url.rpartition("@")[2]
