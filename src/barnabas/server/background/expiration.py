"""Expire history, trashed topics and delegation tokens from the metadata store."""

import asyncio
from collections.abc import Callable

from barnabas.base.clock import Clock
from barnabas.log.trash.trash import TrashedLogs
from barnabas.metadata.audit.history import decide_expire_history
from barnabas.metadata.decision import Decision
from barnabas.metadata.delegation_tokens import decide_remove_expired
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.undeletion import UNBOUNDED, TrashSizes, decide_expire_trash
from barnabas.metadata.writer import MetadataWriter
from barnabas.telemetry.logs import get_logger

#: Interval of the checks.
INTERVAL_MS = 10_000

TRASH_RETENTION = "barnabas.trash.retention.ms"
TRASH_RETENTION_BYTES = "barnabas.trash.retention.bytes"

_log = get_logger("barnabas.metadata")


class Expiration:
    """Removes what is older than its retention from the metadata store."""

    def __init__(
        self, config: DynamicConfig, clock: Clock, metadata: MetadataWriter, trash: TrashedLogs
    ) -> None:
        self._config = config
        self._clock = clock
        self._metadata = metadata
        self._trash = trash
        #: topic id -> the revision that moved it to the trash, and its size in bytes, which does not change there
        self._measured: dict[bytes, tuple[int, int]] = {}

    async def expire_history(self) -> None:
        """Remove historical values beyond `barnabas.audit.retention.ms`."""
        retention_ms = self._config.current.integer("barnabas.audit.retention.ms")
        ended_before_ms = None if retention_ms < 0 else self._clock.wall_ms() - retention_ms
        await self._repeat(
            lambda image, at_once_max: decide_expire_history(image, ended_before_ms, at_once_max=at_once_max)
        )

    async def remove_delegation_tokens(self) -> None:
        """Remove delegation tokens that have expired, with which clients cannot log in any more."""
        now_ms = self._clock.wall_ms()
        count = await self._repeat(
            lambda image, at_once_max: decide_remove_expired(image.delegation_tokens, now_ms, at_once_max)
        )
        if count:
            _log.info("removed expired delegation tokens", tokens_count=count)

    async def empty_trash(self) -> None:
        """Purge topics that exceed the retention time or size of the trash."""
        sizes = await self._sizes()
        deleted_before_ms = self._clock.wall_ms() - self._config.current.integer(TRASH_RETENTION)
        count = await self._repeat(
            lambda image, at_once_max: decide_expire_trash(
                image, deleted_before_ms, sizes, at_once_max=at_once_max
            )
        )
        if count:
            _log.info("purged expired topics from the trash", topics_count=count)

    async def _repeat(self, decide: Callable[[MetadataImage, int], Decision[int]]) -> int:
        """Remove everything that has expired, in commits that the store allows; return how much that was.

        :param decide: Removes at most so many, and returns how many.
        """
        at_once_max = self._metadata.partitions_max
        total = count = await self._metadata.write(lambda image: decide(image, at_once_max))
        while count == at_once_max:
            count = await self._metadata.write(lambda image: decide(image, at_once_max))
            total += count
        return total

    async def _sizes(self) -> TrashSizes:
        """Return the sizes of topics in the trash if its size is limited; only new topics are measured."""
        bytes_max = self._config.current.integer(TRASH_RETENTION_BYTES)
        if bytes_max < 0:
            return UNBOUNDED
        image = self._metadata.image
        await self._metadata.wait_for_revision(image.revision)  # so that their logs are in the trash
        table = image.trashed_topics
        revisions = {trashed.topic_id: table.revision(row) for row, trashed in table.rows.items()}
        known = {
            topic_id: measured
            for topic_id, measured in self._measured.items()
            if revisions.get(topic_id) == measured[0]
        }
        fresh = revisions.keys() - known.keys()
        new_sizes = await asyncio.to_thread(self._trash.sizes_bytes, fresh) if fresh else {}
        self._measured = known | {
            topic_id: (revisions[topic_id], new_sizes.get(topic_id, 0)) for topic_id in fresh
        }
        return TrashSizes(
            bytes_max, {topic_id: size_bytes for topic_id, (_, size_bytes) in self._measured.items()}
        )
