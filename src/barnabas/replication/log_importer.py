"""Files that a job has made outside of the broker, taken in as a partition's log.

The job writes a directory `handover` into that of the partition, where Kafka and a start of ours pass over it, and
wishes the replica into the log directory that it is in already (AlterReplicaLogDirs). The files are checked in a
thread, batch by batch as after a crash; then the log that they make takes the place of the one that is there, which
must never have had a record. Offsets, times and gaps are those of the files: no producer could ask for them.
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.imports.restore_manifest import HANDOVER, MANIFEST_FILE, Handover, read_handover
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.startup.checkpoints import MalformedFile
from barnabas.replication.partition import Partition
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError

ResultT = TypeVar("ResultT")

_log = get_logger("barnabas.handovers")


class Handovers:
    """Takes in what jobs have handed over. The loop calls it."""

    def __init__(self, directories: LogManager, clock: Clock) -> None:
        self._directories = directories
        self._clock = clock
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._is_stopping = False
        self.taken_count = 0

    async def take(self, partition: Partition) -> None:
        """Take in what was handed over for a partition, if anything was.

        :raises KafkaError: INVALID_REQUEST where it does not fit, CORRUPT_MESSAGE where it is damaged,
            KAFKA_STORAGE_ERROR. What was handed over is removed then, and the log stays as it is.
        """
        name = TopicPartition(partition.topic, partition.index)
        task = self._tasks.get(name)
        if task is None:
            path = partition.log.directory / HANDOVER
            if self._is_stopping or not path.is_dir():
                return
            task = asyncio.get_running_loop().create_task(self._take(partition, path))
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name))
        await asyncio.shield(task)

    async def stop(self) -> None:
        """Wait for what is under way; nothing more is taken in."""
        self._is_stopping = True
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _take(self, partition: Partition, path: Path) -> None:
        log, name = partition.log, TopicPartition(partition.topic, partition.index)
        try:
            claimed = self._directories.set_aside(name, path)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}") from error
        try:
            wanted = await self._in_thread(read_handover, claimed)
            self._check(partition, log, wanted)
            made = await self._in_thread(self._open, claimed, log, wanted)
            self._put(partition, log, made, wanted)
        except KafkaError as error:
            _log.error("segment import rejected", partition=str(name), why=error.message)
            await self._in_thread(shutil.rmtree, claimed, True)
            raise
        partition.replace_with_imported_log(made)
        self.taken_count += 1
        _log.info("imported segments", partition=str(name), end_offset=wanted.end_offset)
        home = self._directories.directory_of(name)
        if home is not None:
            await self._in_thread(self._directories.checkpoint, home)

    def _put(self, partition: Partition, log: PartitionLog, made: PartitionLog, wanted: Handover) -> None:
        """Put `made` into the place of `log`, if that is as it was.

        :raises KafkaError: INVALID_REQUEST, KAFKA_STORAGE_ERROR.
        """
        try:
            self._check(partition, log, wanted)
            made.config = log.config
            self._directories.replace(log.topic_partition, made)
        except KafkaError:
            made.abandon()
            raise

    def _check(self, partition: Partition, log: PartitionLog, wanted: Handover) -> None:
        """See that the log is still there, and that nothing has ever been in it.

        :raises KafkaError: INVALID_REQUEST, KAFKA_STORAGE_ERROR.
        """
        name = log.topic_partition
        if self._is_stopping or log.failure is not None or self._directories.get(name) is not log:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is not in use any more")
        if wanted.topic_id != log.topic_id:
            message = f"{name} has topic id {(log.topic_id or b'').hex()}, not {wanted.topic_id.hex()}"
        elif log.log_end_offset > 0:
            message = f"{name} has had records: it ends at offset {log.log_end_offset}"
        elif partition.replicas != (partition.broker_id,) or not partition.is_leader:
            message = f"{name} has other replicas, which would not have the records"
        elif self._directories.future_directory_of(name) is not None:
            message = f"{name} is being moved to another directory"
        else:
            return
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)

    def _open(self, directory: Path, log: PartitionLog, wanted: Handover) -> PartitionLog:
        """The log that the files make, flushed, if all of them are sound. Blocks.

        :raises KafkaError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        size_bytes = sum(path.stat().st_size for path in directory.glob("*.log"))
        try:
            (directory / MANIFEST_FILE).unlink()
            made = PartitionLog.open(
                directory, log.topic_partition, config=log.config, clock=self._clock, topic_id=log.topic_id
            )
            made.flush()
        except (MalformedFile, OSError) as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory}: {error}") from error
        found = (made.log_start_offset, made.log_end_offset, made.size_bytes)
        if found == (wanted.start_offset, wanted.end_offset, size_bytes):
            return made
        made.abandon()
        message = (
            f"{size_bytes} bytes of offsets {wanted.start_offset} to {wanted.end_offset} were handed over, and "
            f"{made.size_bytes} bytes of offsets {made.log_start_offset} to {made.log_end_offset} are sound"
        )
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)

    def _in_thread(self, work: Callable[..., ResultT], *arguments: object) -> "asyncio.Future[ResultT]":
        return asyncio.get_running_loop().run_in_executor(None, work, *arguments)

    def statistics(self) -> dict[str, object]:
        """What is being taken in, and how many logs have been."""
        return {"taken_count": self.taken_count, "under_way": [str(name) for name in self._tasks]}
