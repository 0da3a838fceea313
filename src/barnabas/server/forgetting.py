"""What cluster state lets go of as time passes."""

from barnabas.base.clock import Clock
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.former_states import decide_forget_former
from barnabas.metadata.undeletion import EXPIRED_AT_ONCE_MAX, decide_expire_trash
from barnabas.metadata.writer import MetadataWriter
from barnabas.telemetry.logs import get_logger

#: How often is looked.
INTERVAL_MS = 10_000

TRASH_RETENTION = "barnabas.trash.retention.ms"

_log = get_logger("barnabas.metadata")


class Forgetting:
    """Removes from the store what is older than the configuration wants."""

    def __init__(self, config: DynamicConfig, clock: Clock, metadata: MetadataWriter) -> None:
        self._config = config
        self._clock = clock
        self._metadata = metadata

    async def forget(self) -> None:
        """Let go of former values with the audit's retention."""
        retention_ms = self._config.current.integer("barnabas.audit.retention.ms")
        ended_before_ms = None if retention_ms < 0 else self._clock.wall_ms() - retention_ms
        await self._metadata.write(lambda image: decide_forget_former(image, ended_before_ms))

    async def empty_trash(self) -> None:
        """Let go of deleted topics that have been in the trash for long enough."""
        deleted_before_ms = self._clock.wall_ms() - self._config.current.integer(TRASH_RETENTION)
        count = EXPIRED_AT_ONCE_MAX
        while count == EXPIRED_AT_ONCE_MAX:
            count = await self._metadata.write(lambda image: decide_expire_trash(image, deleted_before_ms))
            if count:
                _log.info("deleted topics have left the trash", topics_count=count)
