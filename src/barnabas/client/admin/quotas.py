"""Quotas of users, client ids and addresses, to and from the messages of the protocol."""

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

#: (type, name) of each part, by type: `user`, `client-id` or `ip`; None stands for the default.
Entity = tuple[tuple[str, str | None], ...]

_EXACT, _DEFAULT = 0, 1


class ClientQuotaAlteration(NamedTuple):
    """What is to become of an entity's quotas; None takes one away."""

    entity: Entity
    values: Mapping[str, float | None]


def describing(parts: Entity = (), *, strict: bool = False) -> DescribeClientQuotasRequest:
    """Asks for the quotas of entities that have these parts; `strict`: and no others."""
    components = [
        ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in parts
    ]
    return DescribeClientQuotasRequest(components=components, strict=strict)


def described(response: DescribeClientQuotasResponse) -> dict[Entity, dict[str, float]]:
    """The quotas of each entity.

    :raises KafkaError: What the broker answered.
    """
    check(response.error_code, response.error_message)
    return {
        _entity((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries or []
    }


def altering(
    alterations: Iterable[ClientQuotaAlteration], *, validate_only: bool
) -> AlterClientQuotasRequest:
    """Sets and takes away quotas."""
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[OpData(key, value or 0.0, value is None) for key, value in values.items()],
        )
        for entity, values in alterations
    ]
    return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)


def altered(response: AlterClientQuotasResponse) -> dict[Entity, KafkaError | None]:
    """What became of each entity; None stands for success."""
    return {
        _entity((part.entity_type, part.entity_name) for part in entry.entity): error_for(
            entry.error_code, entry.error_message
        )
        for entry in response.entries
    }


def _entity(parts: Iterable[tuple[str, str | None]]) -> Entity:
    return tuple(sorted(parts, key=lambda part: part[0]))
