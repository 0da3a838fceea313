"""Reports deleted topics whose logs this broker no longer has; the last broker removes their entries."""

import asyncio

from barnabas.log.log_manager import LogManager
from barnabas.metadata.topic_deletion import decide_remove_deleted
from barnabas.metadata.woken_task import WokenTask
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.telemetry.logs import get_logger

#: After which time to try again if the store failed.
RETRY_S = 0.5

_log = get_logger("barnabas.replication")


class DeletionReporter:
    """Removes this broker from the entries of deleted topics, after a power failure cannot restore their logs.

    While a log directory is offline, it reports nothing, because logs in that directory may be left.
    """

    def __init__(
        self, broker_id: int, replicas: ReplicaManager, log_manager: LogManager, metadata: MetadataWriter
    ) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._log_manager = log_manager
        self._metadata = metadata
        self._reporting = WokenTask(
            "deletion-reports",
            self._report,
            retry_s=RETRY_S,
            log=_log,
            warning="cannot complete the deletion of topics; retrying",
        )
        self.reported_count = 0
        replicas.on_deleted = self._reporting.wake

    def start(self) -> None:
        self._reporting.wake()
        self._reporting.start()

    async def stop(self) -> None:
        await self._reporting.stop()

    async def _report(self) -> None:
        while deleted := self._replicas.deleted_topics()[: self._metadata.partitions_max]:
            await asyncio.to_thread(self._log_manager.flush_directories)
            if self._log_manager.any_offline:
                return
            await self._metadata.write(lambda image: decide_remove_deleted(image, deleted, self._broker_id))
            self._replicas.mark_reported(deleted)
            self.reported_count += len(deleted)

    def statistics(self) -> dict[str, int]:
        return {"reported_count": self.reported_count}
