"""One request of the REST API: its parameters, its body, and the registry."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request

from barnabas.registry import errors
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import schema_of
from barnabas.registry.registration import RegistrationRequest
from barnabas.registry.registry import SchemaRegistry
from barnabas.registry.state import LATEST

_VERSION_MAX = 2**31 - 1
_CONTEXT, _DEFAULT_CONTEXT = ":.", ":.:"
#: Stands for all subjects in subjectPrefix.
ALL_SUBJECTS = ":*:"

Result = Any
Handler = Callable[["RegistryCall"], Awaitable[Result]]


class RegistryRoute(NamedTuple):
    """An address and its handler, which returns the JSON of the response, or text as `PlainText`."""

    method: str
    path: str
    handler: Handler


class PlainText(str):
    """A response that is not JSON."""


class RegistryCall:
    """A request."""

    def __init__(self, registry: SchemaRegistry, request: Request, body: bytes) -> None:
        self.registry = registry
        self._request = request
        self._body = body

    @property
    def subject(self) -> str:
        """The subject in the address; empty if there is none.

        :raises RegistryError: If it cannot be a subject.
        """
        subject = str(self._request.path_params.get("subject", "")).removeprefix(_DEFAULT_CONTEXT)
        if subject.startswith(_CONTEXT):
            raise RegistryError(
                errors.INVALID_SUBJECT, f"Subject '{subject}' is in a context, which is not supported"
            )
        if any(ord(character) < 0x20 for character in subject):
            raise RegistryError(errors.INVALID_SUBJECT, "The specified subject is not a valid subject.")
        return subject

    @property
    def version(self) -> int:
        """The version in the address, or LATEST.

        :raises RegistryError: If it is not a version.
        """
        text = str(self._request.path_params["version"])
        if text in ("latest", "-1"):
            return LATEST
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:12]) <= _VERSION_MAX:
            message = (
                f"The specified version '{text}' is not a valid version id. Allowed values are between "
                f'[1, 2^31-1] and the string "latest"'
            )
            raise RegistryError(errors.INVALID_VERSION, message)
        return int(text)

    @property
    def id(self) -> int:
        """The id of a schema in the address."""
        text = str(self._request.path_params["id"])
        if not text.isascii() or not text.isdigit() or int(text[:12]) > _VERSION_MAX:
            raise RegistryError(404, "HTTP 404 Not Found")
        return int(text)

    def query(self, name: str, default: str = "") -> str:
        """Return a parameter of the address."""
        return self._request.query_params.get(name, default)

    def queries(self, name: str) -> list[str]:
        """Return all values of a parameter of the address."""
        return self._request.query_params.getlist(name)

    def flag(self, name: str, *other_names: str) -> bool:
        """Return a boolean parameter of the address."""
        return any(self.query(each).lower() == "true" for each in (name, *other_names))

    def page(self, items: list[Any]) -> list[Any]:
        """Return the items that `offset` and `limit` ask for."""
        offset, limit = (self._number(name, default) for name, default in (("offset", 0), ("limit", -1)))
        return items[offset:] if limit < 0 else items[offset : offset + limit]

    def _number(self, name: str, default: int) -> int:
        text = self.query(name, str(default))
        try:
            return max(int(text), min(default, 0))
        except ValueError:
            raise RegistryError(400, f"{name} is {text!r}; it must be a number") from None

    def has_prefix(self, subject: str) -> bool:
        """Whether a subject begins with the parameter subjectPrefix."""
        prefix = self.query("subjectPrefix").removeprefix(ALL_SUBJECTS).removeprefix(_DEFAULT_CONTEXT)
        return subject.startswith(prefix)

    def body(self) -> dict[str, Any]:
        """Return the JSON of the request.

        :raises RegistryError: If it is not an object.
        """
        try:
            body = json.loads(self._body or b"{}", parse_constant=_refuse_constant)
            if b"\\u" in self._body:
                json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise RegistryError(400, "The request has half of a surrogate pair") from None
        except (ValueError, RecursionError) as error:
            raise RegistryError(400, f"The request is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise RegistryError(errors.INVALID_REQUEST, "The request must be a JSON object")
        return body

    def registration(self) -> RegistrationRequest:
        """Return the schema in the request.

        :raises RegistryError: If there is none.
        """
        body = self.body()
        text = body.get("schema")
        if not isinstance(text, str) or not text.strip():
            raise RegistryError(errors.INVALID_SCHEMA, "Empty schema")
        try:
            schema = schema_of({**body, "schemaType": str(body.get("schemaType") or "AVRO").upper()})
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            message = f"Invalid schema, details: schemaType, references or metadata are not valid: {error}"
            raise RegistryError(errors.INVALID_SCHEMA, message) from None
        numbers = [_number_or_none(body, name) for name in ("version", "id")]
        return RegistrationRequest(self.subject, schema, self.flag("normalize"), *numbers)


def _number_or_none(body: dict[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value > _VERSION_MAX):
        raise RegistryError(errors.INVALID_REQUEST, f"{name} must be a number of 32 bits")
    return None if value is None or value < 0 else value


def _refuse_constant(name: str) -> None:
    message = f"{name} is not a number"
    raise ValueError(message)
