"""Client quotas in messages of the protocol."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.core.errors import check, error_for
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

#: (type, name) of each part, sorted by type: `user`, `client-id` or `ip`; None is the default.
Entity = tuple[tuple[str, str | None], ...]

_EXACT, _DEFAULT = 0, 1


class ClientQuotaAlteration(NamedTuple):
    """The alteration of an entity's quotas; None removes one."""

    entity: Entity
    values: Mapping[str, float | None]


def describe_quotas_request(parts: Entity = (), *, strict: bool = False) -> DescribeClientQuotasRequest:
    """Return the request for quotas of entities that have these parts; with `strict`, no others."""
    components = [
        ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in parts
    ]
    return DescribeClientQuotasRequest(components=components, strict=strict)


def parse_describe_quotas_response(response: DescribeClientQuotasResponse) -> dict[Entity, dict[str, float]]:
    """Return the quotas of each entity.

    :raises KafkaError: From the broker.
    """
    check(response.error_code, response.error_message)
    return {
        _entity((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries or []
    }


def alter_quotas_request(
    alterations: Iterable[ClientQuotaAlteration], *, validate_only: bool
) -> AlterClientQuotasRequest:
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[OpData(key, value or 0.0, value is None) for key, value in values.items()],
        )
        for entity, values in alterations
    ]
    return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)


def parse_alter_quotas_response(response: AlterClientQuotasResponse) -> dict[Entity, KafkaError | None]:
    """Return the error of each entity; None for success."""
    return {
        _entity((part.entity_type, part.entity_name) for part in entry.entity): error_for(
            entry.error_code, entry.error_message
        )
        for entry in response.entries
    }


def _entity(parts: Iterable[tuple[str, str | None]]) -> Entity:
    return tuple(sorted(parts, key=lambda part: part[0]))
