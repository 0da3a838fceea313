"""Expire history and trashed topics from the metadata store."""

import asyncio

from barnabas.base.clock import Clock
from barnabas.log.trash.trash import TrashedLogs
from barnabas.metadata.audit.stored_history import decide_expire_history
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.undeletion import EXPIRED_AT_ONCE_MAX, UNBOUNDED, TrashSizes, decide_expire_trash
from barnabas.metadata.writer import MetadataWriter
from barnabas.telemetry.logs import get_logger

#: How often is looked.
INTERVAL_MS = 10_000

TRASH_RETENTION = "barnabas.trash.retention.ms"
TRASH_RETENTION_BYTES = "barnabas.trash.retention.bytes"

_log = get_logger("barnabas.metadata")


class Expiration:
    """Removes from the store what is older than the configuration wants."""

    def __init__(
        self, config: DynamicConfig, clock: Clock, metadata: MetadataWriter, trash: TrashedLogs
    ) -> None:
        self._config = config
        self._clock = clock
        self._metadata = metadata
        self._trash = trash
        #: topic id -> the revision that put it into the trash, and its bytes, which do not change there
        self._measured: dict[bytes, tuple[int, int]] = {}

    async def expire_history(self) -> None:
        """Let go of former values with the audit's retention."""
        retention_ms = self._config.current.integer("barnabas.audit.retention.ms")
        ended_before_ms = None if retention_ms < 0 else self._clock.wall_ms() - retention_ms
        await self._metadata.write(lambda image: decide_expire_history(image, ended_before_ms))

    async def empty_trash(self) -> None:
        """Let go of deleted topics that have been in the trash for long enough, and of what is too much for it."""
        sizes = await self._sizes()
        deleted_before_ms = self._clock.wall_ms() - self._config.current.integer(TRASH_RETENTION)
        count = EXPIRED_AT_ONCE_MAX
        while count == EXPIRED_AT_ONCE_MAX:
            count = await self._metadata.write(
                lambda image: decide_expire_trash(image, deleted_before_ms, sizes)
            )
            if count:
                _log.info("deleted topics have left the trash", topics_count=count)

    async def _sizes(self) -> TrashSizes:
        """The bytes that lie in the trash, where they are bounded; what has come since the last time is measured."""
        bytes_max = self._config.current.integer(TRASH_RETENTION_BYTES)
        if bytes_max < 0:
            return UNBOUNDED
        image = self._metadata.image
        await self._metadata.wait_for_revision(
            image.revision
        )  # so that the logs lie where they are looked for
        table = image.trashed_topics
        revisions = {each.topic_id: table.revision(row) for row, each in table.rows.items()}
        known = {
            topic_id: measured
            for topic_id, measured in self._measured.items()
            if revisions.get(topic_id) == measured[0]
        }
        fresh = revisions.keys() - known.keys()
        found = await asyncio.to_thread(self._trash.sizes_bytes, fresh) if fresh else {}
        self._measured = known | {each: (revisions[each], found.get(each, 0)) for each in fresh}
        return TrashSizes(bytes_max, {each: size_bytes for each, (_, size_bytes) in self._measured.items()})
