"""Rollback of a resource, which only Barnabas has."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.client.core.errors import check
from barnabas.wire.barnabas_messages.rollback_resource import (
    RollbackResourceRequest,
    RollbackResourceResponse,
)


class RollbackChange(NamedTuple):
    """A key that a rollback changes; None for no value. Secrets are left out."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Rollback:
    """The changes of a rollback, made or only validated, and notes."""

    keys: list[RollbackChange]
    notes: list[str]


def rollback_request(resource: str, revision: int, *, validate_only: bool) -> RollbackResourceRequest:
    return RollbackResourceRequest(resource=resource, revision=revision, validate_only=validate_only)


def parse_rollback_response(response: RollbackResourceResponse) -> Rollback:
    """Return the changes.

    :raises KafkaError: If nothing was changed.
    """
    check(response.error_code, response.error_message)
    keys = [RollbackChange(key.key, _value(key.before), _value(key.after)) for key in response.keys]
    return Rollback(keys, list(response.notes))


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)
