"""Imports files that a job has written outside the broker as the log of a partition.

The job writes a directory `import` into that of the partition, which Kafka and a start of this broker ignore. Then
it sends ImportSegments. A thread checks the files batch by batch, as after a crash; then the imported log replaces the
current one, which must never have had a record. Offsets, timestamps and gaps are those of the files, which a producer
could not create.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from barnabas.base import disk
from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.import_manifest import (
    IMPORT_DIRECTORY,
    MANIFEST_FILE,
    ImportManifest,
    read_import_manifest,
)
from barnabas.log.log_manager import LogManager
from barnabas.log.open_log import open_log
from barnabas.log.partition_log import PartitionLog
from barnabas.replication.partition import Partition
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.errors import ErrorCode, KafkaError

ResultT = TypeVar("ResultT")

_log = get_logger("barnabas.import")


class SegmentImporter:
    """Imports logs that jobs have written. All methods run on the event loop."""

    def __init__(self, log_manager: LogManager, clock: Clock) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._tasks: dict[TopicPartition, asyncio.Task[ImportManifest]] = {}
        self._is_stopping = False
        self.imported_count = 0
        self.rejected_count = 0

    async def import_log(self, partition: Partition) -> ImportManifest:
        """Import the log that a job has written for a partition; return its manifest.

        :raises KafkaError: INVALID_REQUEST if there is none or it does not match the partition, CORRUPT_MESSAGE if it
            is damaged, KAFKA_STORAGE_ERROR. Then the files are removed, and the current log stays in use.
        """
        tp = TopicPartition(partition.topic, partition.index)
        task = self._tasks.get(tp)
        if task is None:
            path = partition.log.directory / IMPORT_DIRECTORY
            if self._is_stopping:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the broker is shutting down")
            if not path.is_dir():
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"there are no segments to import in {path}")
            task = asyncio.get_running_loop().create_task(self._import(partition, path))
            self._tasks[tp] = task
            task.add_done_callback(lambda _: self._tasks.pop(tp))
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Wait for imports in progress, and start no more."""
        self._is_stopping = True
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _import(self, partition: Partition, path: Path) -> ImportManifest:
        log, name = partition.log, TopicPartition(partition.topic, partition.index)
        try:
            claimed = self._log_manager.rename_for_removal(name, path)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}") from error
        try:
            manifest = await self._in_thread(read_import_manifest, claimed)
            self._check(partition, log, manifest)
            imported = await self._in_thread(self._open, claimed, log, manifest)
            self._replace(partition, log, imported, manifest)
        except KafkaError as error:
            self.rejected_count += 1
            _log.error("segment import rejected", partition=str(name), why=error.message)
            await self._in_thread(disk.remove_directory, claimed)
            raise
        partition.replace_with_imported_log(imported)
        self.imported_count += 1
        _log.info("imported segments", partition=str(name), end_offset=manifest.end_offset)
        home = self._log_manager.directory_of(name)
        if home is not None:
            await self._in_thread(self._log_manager.checkpoint, home)
        return manifest

    def _replace(
        self, partition: Partition, log: PartitionLog, imported: PartitionLog, manifest: ImportManifest
    ) -> None:
        """Replace `log` by `imported`, if `log` is still in use and empty.

        :raises KafkaError: INVALID_REQUEST, KAFKA_STORAGE_ERROR.
        """
        try:
            self._check(partition, log, manifest)
            imported.config = log.config
            self._log_manager.replace(log.topic_partition, imported)
        except KafkaError:
            imported.local.abandon()
            raise

    def _check(self, partition: Partition, log: PartitionLog, manifest: ImportManifest) -> None:
        """Check that the log is still in use, and has never had a record.

        :raises KafkaError: INVALID_REQUEST, KAFKA_STORAGE_ERROR.
        """
        name = log.topic_partition
        if self._is_stopping or log.failure is not None or self._log_manager.get(name) is not log:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is not in use any more")
        if manifest.topic_id != log.topic_id:
            message = f"{name} has topic id {(log.topic_id or b'').hex()}, not {manifest.topic_id.hex()}"
        elif log.log_end_offset > 0:
            message = f"{name} has had records: its log end offset is {log.log_end_offset}, not 0"
        elif partition.replicas != (partition.broker_id,) or not partition.is_leader:
            message = f"{name} has other replicas, which would not get the imported records"
        elif self._log_manager.future_directory_of(name) is not None:
            message = f"{name} is being moved to another directory"
        else:
            return
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)

    def _open(self, directory: Path, log: PartitionLog, manifest: ImportManifest) -> PartitionLog:
        """Open and flush the log that the files make, if all of them are valid. Blocks.

        :raises KafkaError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        size_bytes = sum(path.stat().st_size for path in directory.glob("*.log"))
        try:
            disk.remove_file(directory / MANIFEST_FILE)
            imported = open_log(
                directory, log.topic_partition, config=log.config, clock=self._clock, topic_id=log.topic_id
            )
            imported.flush()
        except (MalformedFile, OSError) as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory}: {error}") from error
        imported_state = (imported.log_start_offset, imported.log_end_offset, imported.size_bytes)
        if imported_state == (manifest.start_offset, manifest.end_offset, size_bytes):
            return imported
        imported.local.abandon()
        message = (
            f"the manifest declares offsets {manifest.start_offset} to {manifest.end_offset} in {size_bytes} bytes, "
            f"but the valid data is offsets {imported.log_start_offset} to {imported.log_end_offset} "
            f"in {imported.size_bytes} bytes"
        )
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)

    def _in_thread(self, work: Callable[..., ResultT], *arguments: object) -> "asyncio.Future[ResultT]":
        return asyncio.get_running_loop().run_in_executor(None, work, *arguments)

    # Statistics

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.SEGMENT_IMPORTS, lambda: [({}, self.imported_count)])
        registry.add_metric(names.SEGMENT_IMPORTS_REJECTED, lambda: [({}, self.rejected_count)])

    def statistics(self) -> dict[str, object]:
        """Return the imports in progress, and the numbers of imported logs and of rejected imports."""
        return {
            "imported_count": self.imported_count,
            "rejected_count": self.rejected_count,
            "running": [str(name) for name in self._tasks],
        }
