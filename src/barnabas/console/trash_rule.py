"""How long a cluster keeps deleted topics, as far as the principal may see it."""

from typing import NamedTuple

from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.console.view import View
from barnabas.wire.errors import ErrorCode, KafkaError

_RETENTION_MS, _RETENTION_BYTES = "barnabas.trash.retention.ms", "barnabas.trash.retention.bytes"


class TrashRule(NamedTuple):
    """Whether deleted topics can be restored (None: unknown), and the limits (None: unknown or none)."""

    keeps: bool | None
    retention_ms: int | None = None
    bytes_max: int | None = None


async def trash_rule(view: View) -> TrashRule:
    """Read the trash settings from a broker's configs; without permission, check whether the cluster has a trash at
    all.
    """
    broker = Resource(ResourceKind.BROKER, str((await view.cluster_view()).controller_id))
    keys = [_RETENTION_MS, _RETENTION_BYTES]
    outcome = (await view.admin.describe_configs([broker], keys, synonyms=False))[broker]
    if isinstance(outcome, KafkaError):
        return TrashRule(None if await _has_trash(view) else False)
    values = {entry.name: int(entry.value or 0) for entry in outcome}
    retention_ms, bytes_max = values.get(_RETENTION_MS, 0), values.get(_RETENTION_BYTES, -1)
    return TrashRule(retention_ms > 0, retention_ms, bytes_max if bytes_max >= 0 else None)


async def _has_trash(view: View) -> bool:
    try:
        await view.admin.describe_trash()
    except KafkaError as error:
        return error.code is not ErrorCode.UNSUPPORTED_VERSION
    return True
