"""Runs one shard: loads it from its log, passes events to it, and applies their results."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from enum import StrEnum
from typing import Any, Generic, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.collector import paused_collector
from barnabas.coordinator.counts import CoordinatorCounts
from barnabas.coordinator.result import (
    CoordinatorResult,
    Pending,
    PendingResponse,
    ResponseT,
    Timer,
    TimerKey,
)
from barnabas.coordinator.shard import RecordPosition, Shard, Step
from barnabas.coordinator.shard_log import LoadedBatch, ShardLog, coordinator_error
from barnabas.coordinator.timers import Timers
from barnabas.log.append_info import AppendInfo
from barnabas.telemetry.logs import get_logger
from barnabas.wire.coordinator_records.serde import AnyRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker

ShardT = TypeVar("ShardT", bound=Shard)

#: How long a request waits for the replicas of its records by default (offsets.commit.timeout.ms).
WRITE_TIMEOUT_MS = 5_000

#: When an event without a request is run again whose records cannot be appended, for example for want of replicas.
RETRY_MS = 500

#: When a timer comes again whose records the log does not accept, because they are too large for example.
REFUSED_TIMER_MS = 30_000

_log = get_logger("barnabas.coordinator")


class ShardState(StrEnum):
    """The state of a shard on this broker."""

    LOADING = "Loading"
    ACTIVE = "Active"
    FAILED = "Failed"
    CLOSED = "Closed"


_S = ShardState
TRANSITIONS: dict[ShardState, frozenset[ShardState]] = {
    _S.LOADING: frozenset({_S.ACTIVE, _S.FAILED, _S.CLOSED}),
    _S.ACTIVE: frozenset({_S.FAILED, _S.CLOSED}),
    _S.FAILED: frozenset({_S.CLOSED}),
    _S.CLOSED: frozenset(),
}
assert TRANSITIONS.keys() == set(ShardState)


class ShardRunner(Generic[ShardT]):
    """One shard and its log. All methods run on the event loop; events never overlap."""

    def __init__(
        self,
        shard: ShardT,
        log: ShardLog,
        clock: Clock,
        do: Callable[[Any], None] = lambda effect: None,
        counts: CoordinatorCounts | None = None,
        write_timeout_ms: int = WRITE_TIMEOUT_MS,
    ) -> None:
        """:param do: Does what results request outside the shard.
        :param counts: Shared with other shards.
        :param write_timeout_ms: How long a request waits until its records are stored. The records stay in the log, and
            the effects of the result follow when they are stored.
        """
        self.shard = shard
        self.log = log
        self._clock = clock
        self._do = do
        self._counts = counts or CoordinatorCounts()
        self._write_timeout_s = write_timeout_ms / 1000
        self.state = ShardState.LOADING
        self.story: list[tuple[ShardState, str]] = []
        self._timers = Timers(self._expire)
        self._pending: dict[Pending[Any], asyncio.Future[Any]] = {}
        self._storing: set[asyncio.Task[None]] = set()
        self.load_ms = 0  #: duration of loading

    def transition(self, target: ShardState, why: str) -> None:
        assert target in TRANSITIONS[self.state], (self.state, target, self.story)
        self.state = target
        self.story.append((target, why))

    # Loading

    async def load(self) -> None:
        """Replay the log, then serve; other clients are served in between."""
        started_ms = self._clock.monotonic_ms()
        try:
            await self._replay_log()
        except KafkaError as error:
            self.fail(f"cannot read its log: {error.message}")
            return
        except Exception as error:  # whatever the error is, the shard must not be loaded again and again
            _log.exception("cannot load the log of a coordinator", partition=str(self.log))
            self.fail(f"cannot load its log: {error!r}")
            return
        if self.state is not ShardState.LOADING:
            return
        self.load_ms = self._clock.monotonic_ms() - started_ms
        self._counts.loads_count += 1
        self._counts.load_ms += self.load_ms
        self.transition(ShardState.ACTIVE, f"replayed up to offset {self.log.end_offset}")
        self.run_event(lambda shard, result: shard.on_loaded(result))

    async def _replay_log(self) -> None:
        """Replay up to the end without a pause at the end, so that no later append is missed."""
        offset: int | None = self.log.start_offset
        while offset is not None and self.state is ShardState.LOADING:
            try:
                offset = self._replay_slice(offset)
            except KafkaError as error:
                if error.code is not ErrorCode.KAFKA_STORAGE_ERROR or not self.log.is_online:
                    raise
                # Descriptors or memory are short: no other broker takes over, so the shard would never be loaded.
                _log.warning(
                    "cannot read the log of a coordinator now", why=error.message, partition=str(self.log)
                )
                await asyncio.sleep(RETRY_MS / 1000)
            else:
                if offset is not None:
                    await asyncio.sleep(0)

    def _replay_slice(self, offset: int) -> int | None:
        """Replay some batches from `offset` on; return the next offset, or None at the end."""
        with paused_collector():  # collections would take a third of the time
            batches = self.log.read(offset)
            for batch in batches:
                self._replay_batch(batch)
        return batches[-1].header.last_offset + 1 if batches else None

    def _replay_batch(self, batch: LoadedBatch) -> None:
        for record, position in batch.records:
            self.shard.replay(record, position)
        if batch.marker is not None:
            self.shard.replay_transaction_marker(batch.marker)

    # Events

    async def handle_request(
        self, event: Callable[[ShardT, CoordinatorResult, Pending[ResponseT]], None], label: str
    ) -> ResponseT:
        """Pass a request to the shard and wait for its response, from this event or a later one.

        :raises KafkaError: From the shard, or if its records cannot be appended.
        """
        self.check_active()
        pending: Pending[ResponseT] = Pending(label)
        result = CoordinatorResult(self._clock.wall_ms())
        event(self.shard, result, pending)
        if _has_only_response(result, pending) and self.log.stored_everything:
            self._apply_timers(result)
            response: ResponseT = _response_of(result.responses[0])
            return response
        future: asyncio.Future[ResponseT] = asyncio.get_running_loop().create_future()
        self._pending[pending] = future
        try:
            self._perform(result, pending)
            return await future
        finally:
            self._pending.pop(pending, None)

    def write(
        self, event: Callable[[ShardT, CoordinatorResult], ResponseT]
    ) -> ResponseT | Coroutine[Any, Any, ResponseT]:
        """Pass an event to the shard that answers it immediately; return the response, or a coroutine while it is being
        written.

        :raises KafkaError: From the shard, or if its records cannot be appended.
        """
        self.check_active()
        result = CoordinatorResult(self._clock.wall_ms())
        response = event(self.shard, result)
        assert not result.responses, "an event of `write` must not answer pending requests"
        if result.records:
            try:
                self._append(result)
            except KafkaError as error:
                self._count_refused_append(error)
                raise coordinator_error(error) from error
        self._apply_timers(result)
        stored = self.log.stored()
        if stored is not None:
            return self._answer_when_stored(stored, result, response)
        self._do_effects(result)
        return response

    async def _answer_when_stored(
        self, stored: Awaitable[None], result: CoordinatorResult, response: ResponseT
    ) -> ResponseT:
        began_ms = self._clock.monotonic_ms()
        try:
            await self._until_stored(stored)
        finally:
            self._counts.waits_count += 1
            self._counts.wait_ms += self._clock.monotonic_ms() - began_ms
        self._do_effects(result)
        return response

    async def _until_stored(self, stored: Awaitable[None]) -> None:
        """Wait for the replicas and the disk.

        :raises KafkaError: COORDINATOR_NOT_AVAILABLE if they take too long, or the error that ended the wait.
        """
        waiting = asyncio.ensure_future(
            stored
        )  # the coroutine of a request runs in no task, and cannot be cancelled
        waiting.add_done_callback(_retrieve)
        try:
            await asyncio.wait((waiting,), timeout=self._write_timeout_s)
            if not waiting.done():
                raise self._not_stored()
            waiting.result()
        finally:
            waiting.cancel()

    def _not_stored(self) -> KafkaError:
        message = f"The replicas of {self.log} did not store the records within {self._write_timeout_s} s."
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)

    async def query(self, run_query: Callable[[ShardT, int], ResponseT]) -> ResponseT:
        """Return the result of a query, once everything that it depends on is written.

        :raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, or from the query.
        """
        self.check_active()
        response = run_query(self.shard, self._clock.wall_ms())
        stored = self.log.stored()
        if stored is not None:
            await self._until_stored(stored)
        return response

    def run_event(self, event: Callable[[ShardT, CoordinatorResult], None]) -> None:
        """Pass an event without a request to the shard; again later, if its records cannot be appended now."""
        refusal = self._run_event(event)
        if refusal is not None and refusal.code.retriable:
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self.run_event, event)

    def _run_event(self, event: Callable[[ShardT, CoordinatorResult], None]) -> KafkaError | None:
        """Return the error if nothing was done, because the records cannot be appended."""
        if self.state is not ShardState.ACTIVE:
            return None
        result = CoordinatorResult(self._clock.wall_ms())
        event(self.shard, result)
        return self._perform(result)

    async def run_steps(self, steps: Iterable[Step]) -> None:
        """Pass the steps of an event without a request to the shard; other clients are served in between."""
        for step in steps:
            if self.state is not ShardState.ACTIVE:
                return
            self._run_step(step)
            await asyncio.sleep(0)

    def _run_step(self, step: Step) -> None:
        self.run_event(lambda shard, result: step(result))

    def end_transaction(self, marker: EndTransactionMarker) -> None:
        """Handle a transaction marker that was appended to the shard's log."""
        if self.state is ShardState.ACTIVE:  # while loading, the marker is read from the log
            self.shard.replay_transaction_marker(marker)

    def _expire(self, key: TimerKey) -> None:
        """Pass a timer to the shard; if its records cannot be appended, the timer is set again."""
        refusal = self._run_event(lambda shard, result: shard.expire(result, key))
        if refusal is not None:
            self._timers.apply(Timer(key, RETRY_MS if refusal.code.retriable else REFUSED_TIMER_MS))

    def check_active(self) -> None:
        """Check that the shard serves requests.

        :raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR.
        """
        if self.state is ShardState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading.")
        if self.state is not ShardState.ACTIVE:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "This broker is not the coordinator.")

    # Results of events

    def _perform(self, result: CoordinatorResult, request: Pending[Any] | None = None) -> KafkaError | None:
        """Return the error if the records cannot be appended, and nothing replaces the result."""
        if result.records:
            try:
                self._append(result)
            except KafkaError as error:
                self._handle_append_error(result, error, request)
                return error if result.on_append_error is None else None
        self._apply_timers(result)
        if result.responses or result.effects:
            self._finish_when_stored(result)
        return None

    def _apply_timers(self, result: CoordinatorResult) -> None:
        for timer in result.timers:
            self._timers.apply(timer)

    def _append(self, result: CoordinatorResult) -> None:
        batches = (result.records,) if result.is_atomic else self.log.split(result.records)
        for records in batches:
            self._replay(result, records, self.log.append(records, result.now_ms, result.producer))
            self._counts.batches_count += 1
            self._counts.records_count += len(records)

    def _replay(self, result: CoordinatorResult, records: Sequence[AnyRecord], appended: AppendInfo) -> None:
        producer = result.producer
        ids = (producer.producer_id, producer.producer_epoch) if producer else ()
        for offset, record in enumerate(records, appended.first_offset):
            self.shard.replay(record, RecordPosition(offset, result.now_ms, *ids))

    def _handle_append_error(
        self, result: CoordinatorResult, error: KafkaError, request: Pending[Any] | None
    ) -> None:
        self._count_refused_append(error)
        if result.on_append_error is not None:
            instead = CoordinatorResult(result.now_ms)
            result.on_append_error(instead, coordinator_error(error))
            self._perform(instead, request)
            return
        refused = {response.pending for response in result.responses} | ({request} if request else set())
        self._complete([PendingResponse(pending, coordinator_error(error)) for pending in refused])

    def _count_refused_append(self, error: KafkaError) -> None:
        self._counts.refused_appends_count += 1
        _log.warning("cannot append to the log of a coordinator", why=error.message, partition=str(self.log))

    def _finish_when_stored(self, result: CoordinatorResult) -> None:
        stored = self.log.stored()
        if stored is None:
            self._finish(result)
            return
        task = asyncio.get_running_loop().create_task(self._finish_after(stored, result))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def _finish_after(self, stored: Awaitable[None], result: CoordinatorResult) -> None:
        began_ms = self._clock.monotonic_ms()
        timer = asyncio.get_running_loop().call_later(self._write_timeout_s, self._time_out, result.responses)
        try:
            await stored
        except KafkaError as error:
            self._complete([PendingResponse(pending, error) for pending, _ in result.responses])
        else:
            self._finish(result)
        finally:
            timer.cancel()
            self._counts.waits_count += 1
            self._counts.wait_ms += self._clock.monotonic_ms() - began_ms

    def _time_out(self, responses: list[PendingResponse]) -> None:
        error = self._not_stored()
        self._complete([PendingResponse(pending, error) for pending, _ in responses])

    def _finish(self, result: CoordinatorResult) -> None:
        self._complete(result.responses)
        self._do_effects(result)

    def _do_effects(self, result: CoordinatorResult) -> None:
        for effect in result.effects:
            self._do(effect)

    def _complete(self, responses: list[PendingResponse]) -> None:
        for pending, response in responses:
            future = self._pending.pop(pending, None)
            if future is None or future.done():
                continue  # the request was cancelled
            if isinstance(response, KafkaError):
                future.set_exception(response)
            else:
                future.set_result(response)

    # Stopping

    def fail(self, why: str) -> None:
        """Stop serving until a leader is elected again."""
        _log.error("a coordinator shard failed", why=why, partition=str(self.log))
        self._stop_serving(ShardState.FAILED, why)

    def close(self, why: str) -> None:
        """Stop serving because this broker is not the coordinator any more."""
        if self.state is not ShardState.CLOSED:
            self._stop_serving(ShardState.CLOSED, why)

    def _stop_serving(self, target: ShardState, why: str) -> None:
        self.transition(target, why)
        self._timers.cancel_all()
        self.shard.on_unloaded()
        error = KafkaError(ErrorCode.NOT_COORDINATOR, "This broker is no longer the coordinator.")
        self._complete([PendingResponse(pending, error) for pending in tuple(self._pending)])

    @property
    def pending_count(self) -> int:
        """Number of requests that wait for their responses."""
        return len(self._pending)

    @property
    def timers_count(self) -> int:
        return len(self._timers)

    def statistics(self) -> dict[str, object]:
        return {
            "state": self.state.value,
            "load_ms": self.load_ms,
            "pending_count": self.pending_count,
            "timers_count": self.timers_count,
            "end_offset": self.log.end_offset,
            **self.shard.statistics(),
        }


def _has_only_response(result: CoordinatorResult, request: Pending[Any]) -> bool:
    """Return whether a result has only the response to its request, and timers, as that of a heartbeat."""
    responses = result.responses
    return (
        not result.records and not result.effects and len(responses) == 1 and responses[0].pending is request
    )


def _response_of(pending_response: PendingResponse) -> Any:
    response = pending_response.response
    if isinstance(response, KafkaError):
        raise response
    return response


def _retrieve(waiting: "asyncio.Future[None]") -> None:
    """Retrieve the error of a wait whose request has ended, so that asyncio does not report it."""
    if not waiting.cancelled():
        waiting.exception()
