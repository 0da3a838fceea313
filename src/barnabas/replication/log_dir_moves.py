"""All moves between the log directories of this broker: starts, throttles, completes and cancels them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.base.throttle import Throttle
from barnabas.log.files import unlink_files
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_manager import LogManager
from barnabas.log.segments.segments import FilePart
from barnabas.replication.flusher import Flusher
from barnabas.replication.log_dir_move import MoveAction, MoveState, ReplicaMove, decide_move
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError

ResultT = TypeVar("ResultT")

#: Largest number of bytes that a step copies, unless a single batch is larger.
STEP_BYTES_MAX = 1 << 20

#: Largest number of missing bytes to copy on the event loop when the future replica replaces the log; doubled each time
#: that more was appended while the future replica was being flushed.
LAST_STEP_BYTES, LAST_STEP_BYTES_MAX = 64 << 10, 4 << 20

#: Number of consecutive steps without progress after which a log is considered damaged.
EMPTY_STEPS_COUNT_MAX = 5

_log = get_logger("barnabas.log_dirs")


class LogDirMoves:
    """Moves replicas, a limited number at a time. All methods run on the event loop."""

    def __init__(
        self,
        replicas: ReplicaManager,
        flusher: Flusher,
        clock: Clock,
        bytes_per_second: Callable[[], int],
        threads_count: int,
    ) -> None:
        self._replicas = replicas
        self._log_manager: LogManager = replicas.log_manager
        self._flusher = flusher
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._threads = ThreadPoolExecutor(threads_count, thread_name_prefix="log-dir-move")
        self._turns = asyncio.Semaphore(threads_count)
        self._throttle = Throttle()
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._moves: dict[TopicPartition, ReplicaMove] = {}
        self._stopping = asyncio.Event()
        self._abruptly = False
        self.moved_count = 0

    # Requests

    def alter(self, partition: Partition, destination: LogDirectory) -> None:
        """Move a replica to `destination`, wherever it is or is being moved to.

        :raises KafkaError: KAFKA_STORAGE_ERROR when a directory is offline: the replica might be there already.
        """
        tp = TopicPartition(partition.topic, partition.index)
        log_manager = self._log_manager
        current, future = log_manager.directory_of(tp), log_manager.future_directory_of(tp)
        if current is None or partition.log.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} is offline: {partition.log.failure}")
        action = decide_move(current, future, destination)
        if action in (MoveAction.CANCEL, MoveAction.RESTART):
            self._cancel(tp, f"requested in {destination.path}")
        if action in (MoveAction.START, MoveAction.RESTART):
            if log_manager.any_offline:
                message = f"cannot move {tp} while a log directory is offline"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
            log = log_manager.create_future(tp, destination)
            self._start(ReplicaMove(partition, partition.log, log))

    def resume(self) -> None:
        """Continue the moves that the last shutdown interrupted, before anything is appended."""
        for name, future in list(self._log_manager.futures.items()):
            partition = self._replicas.find(*name)
            if partition is None:
                self._log_manager.drop_future(name)
                continue
            move = ReplicaMove(partition, partition.log, future)
            try:
                unlink_files(move.truncate_future())
            except KafkaError as error:
                self._fail(move, error)
            except OSError as error:
                self._fail(move, future.take_offline(error))
            else:
                self._start(move)

    def _start(self, move: ReplicaMove) -> None:
        name = move.name
        previous = self._tasks.get(name)
        task = asyncio.get_running_loop().create_task(self._run(move, previous), name=f"log-dir-move {name}")
        self._moves[name], self._tasks[name] = move, task
        task.add_done_callback(lambda done: self._ended(name, done))
        _log.info("moving a replica", partition=str(name), to=str(move.future.directory.parent))

    def _ended(self, tp: TopicPartition, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(tp) is task:
            del self._tasks[tp], self._moves[tp]
        if (error := task.exception()) is not None:
            _log.error(
                "log directory move failed with an unexpected error", partition=str(tp), error=repr(error)
            )

    def _cancel(self, tp: TopicPartition, why: str) -> None:
        self._log_manager.drop_future(tp)
        self._moves[tp].transition(MoveState.CANCELLED, why)

    async def stop(self, *, abruptly: bool = False) -> None:
        """Stop copying. Complete promoted moves, unless `abruptly` is set to simulate a kill."""
        self._abruptly = abruptly
        self._stopping.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._threads.shutdown()

    def statistics(self) -> dict[str, object]:
        """Return the current moves, and the number of moved replicas."""
        return {
            "moved_count": self.moved_count,
            "moves": [move.statistics() for move in self._moves.values()],
        }

    # Work

    async def _run(self, move: ReplicaMove, previous: "asyncio.Task[None] | None") -> None:
        if previous is not None:
            await asyncio.wait([previous])
        async with self._turns:
            try:
                await self._copy_all(move)
            except KafkaError as error:
                self._fail(move, error)
            except OSError as error:  # from truncated files on the future replica's disk
                self._fail(move, move.future.take_offline(error))
        if move.state is MoveState.PROMOTED:
            await self._finish(move)
        elif move.state is not MoveState.STOPPED:
            move.future.local.abandon()

    async def _copy_all(self, move: ReplicaMove) -> None:
        """Copy until the future replica is promoted, or until the move ends in another way.

        :raises KafkaError: When a disk fails or the log is damaged.
        """
        last_step_bytes, is_flushed, empty_steps_count = LAST_STEP_BYTES, False, 0
        while await self._may_copy(move):
            removed = move.truncate_future()
            if removed:
                await self._in_thread(unlink_files, removed)
                continue
            part = move.next_part(last_step_bytes)
            if not part.is_last:
                if is_flushed:
                    last_step_bytes = min(2 * last_step_bytes, LAST_STEP_BYTES_MAX)
                copied_bytes = await self._step(move, move.next_part(self._step_bytes()))
                empty_steps_count = 0 if copied_bytes else empty_steps_count + 1
                if empty_steps_count == EMPTY_STEPS_COUNT_MAX:
                    message = f"{move.name} has no readable batch at offset {move.future.log_end_offset}"
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
            elif is_flushed:
                self._promote(move, part)
            else:
                await self._flush(move)
                is_flushed = True

    async def _may_copy(self, move: ReplicaMove) -> bool:
        """Wait until the move may copy more; return False if it has ended."""
        while move.state is MoveState.COPYING:
            if self._stopping.is_set():
                move.transition(MoveState.STOPPED, "the broker stops")
            elif self._log_manager.futures.get(move.name) is not move.future:
                move.transition(MoveState.CANCELLED, "the topic was deleted")
            else:
                wait_ms = self._throttle.wait_ms(self._bytes_per_second(), self._clock.monotonic_ms())
                if not wait_ms:
                    return True
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), wait_ms / 1000)
        return False

    def _step_bytes(self) -> int:
        """Return the size of a step; small under a low rate limit, to spread the copying over the second."""
        return max(1, min(STEP_BYTES_MAX, self._bytes_per_second()))

    async def _step(self, move: ReplicaMove, part: FilePart) -> int:
        """Copy a part; returns 0 if it was truncated or deleted while it was read.

        :raises KafkaError: When a disk fails.
        """
        try:
            copied_bytes = await self._in_thread(move.copy, part)
        except OSError as error:
            raise move.source.take_offline(error) from error
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            return 0
        self._throttle.used(copied_bytes, self._bytes_per_second(), self._clock.monotonic_ms())
        return copied_bytes

    async def _flush(self, move: ReplicaMove) -> None:
        try:
            move.future.mark_flushed(await self._in_thread(move.future.sync))
        except OSError as error:
            raise move.future.take_offline(error) from error

    def _promote(self, move: ReplicaMove, last: FilePart) -> None:
        """Copy the missing rest and replace the log, without yielding to the event loop.

        :raises KafkaError: When a disk fails or the log is damaged.
        """
        try:
            move.copy(last)
        except OSError as error:
            raise move.source.take_offline(error) from error
        if move.future.log_end_offset == move.source.log_end_offset:
            move.replace(lambda: self._log_manager.replace_current_with_future(move.name))
            self.moved_count += 1

    async def _finish(self, move: ReplicaMove) -> None:
        """Flush the new log, then delete the old one."""
        old, new = move.source, move.future
        waits = (
            self._flusher.when_flushed(new),
            self._flusher.when_flushed(old),
        )  # the second for requests that already wait for it
        failure, _ = await asyncio.gather(*waits, return_exceptions=True)
        home = self._log_manager.directory_of(move.name)
        if failure is None and home is not None:
            await self._in_thread(self._log_manager.checkpoint, home)
        if failure is not None:
            move.transition(MoveState.FAILED, f"cannot flush the new log: {failure}")
            old.local.abandon()
        elif self._abruptly:
            move.transition(MoveState.STOPPED, "killed")
            old.local.abandon()
        else:
            if self._log_manager.is_retired(old):
                self._log_manager.finish_replacement(move.name)
                await self._in_thread(self._log_manager.remove_marks, [new])
            move.transition(MoveState.DONE, f"in {new.directory.parent}")
            _log.info("moved a replica", partition=str(move.name), to=str(new.directory.parent))

    def _fail(self, move: ReplicaMove, error: KafkaError) -> None:
        """End the move; the current log stays in use if its disk works."""
        if move.state is not MoveState.COPYING:
            return
        log_manager = self._log_manager
        if log_manager.futures.get(move.name) is not move.future:
            move.transition(MoveState.CANCELLED, "the topic was deleted")
            return
        if move.future.failure is not None:
            log_manager.fail_future_directory(move.name, OSError(move.future.failure))
        if move.source.failure is not None or move.future.failure is not None:
            log_manager.detach_future(move.name)
        else:
            log_manager.drop_future(move.name)
        move.transition(MoveState.FAILED, error.message)
        _log.error("cannot move a replica", partition=str(move.name), why=error.message)

    def _in_thread(self, work: Callable[..., ResultT], *arguments: object) -> "asyncio.Future[ResultT]":
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
