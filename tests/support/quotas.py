"""Short forms of requests on quotas."""

from collections.abc import Mapping

from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)


def quota_entry(parts: Mapping[str, str | None], values: Mapping[str, float | None]) -> EntryData:
    """Build the alteration of one entity; None removes a quota."""
    entity = [EntityData(kind, name) for kind, name in parts.items()]
    return EntryData(entity, [OpData(key, value or 0.0, value is None) for key, value in values.items()])


def quota(parts: Mapping[str, str | None], **values: float | None) -> AlterClientQuotasRequest:
    """Build a request that alters one entity."""
    return AlterClientQuotasRequest([quota_entry(parts, values)])
