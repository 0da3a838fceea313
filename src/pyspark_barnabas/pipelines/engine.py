"""Runs a pipeline: one driver, and a streaming query for each flow; a flow that fails does not stop others."""

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_barnabas.failures import one_line_error
from pyspark_barnabas.paths import uri
from pyspark_barnabas.pipelines.batches import FlowBatchWriter
from pyspark_barnabas.pipelines.building import built, takes
from pyspark_barnabas.pipelines.declaration import Flow, JdbcInput, Pipeline, Trigger, TriggerKind
from pyspark_barnabas.pipelines.sources.jdbc_poller import Taking, interval_s
from pyspark_barnabas.pipelines.state import FlowState, FlowStatus, StateDirectory
from pyspark_barnabas.stream_offsets import positions_only

_POLL_S = 0.2

#: Called with all flows whenever one of them changes.
Watcher = Callable[[Collection[FlowStatus]], None]


def run_pipeline(
    spark: SparkSession,
    pipeline: Pipeline,
    *,
    stopping: Event | None = None,
    watcher: Watcher = lambda statuses: None,
) -> list[FlowStatus]:
    """Run all flows until they are done, or until `stopping` is set and each has finished its batch.

    A flow that fails is reported and stops alone.

    :raises PipelineRuns: Another process runs it.
    """
    state = StateDirectory(pipeline.state)
    with state.locked():
        runs = _Runs(spark, pipeline, state, stopping or Event())
        try:
            return runs.watch(watcher)
        finally:
            runs.end()


@dataclass
class _FlowRun:
    """A running flow; without a query it waits for a database, or could not be started."""

    writer: FlowBatchWriter
    status: FlowStatus
    start: Callable[[], StreamingQuery] | None = None
    query: StreamingQuery | None = None
    taking: Taking | None = None  #: if it reads a database
    readings: int = 1
    seen: tuple[int, str] | None = None  #: batch and time of the last counted progress


class _Runs:
    """All flows."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, state: StateDirectory, stopping: Event
    ) -> None:
        self._state = state
        self._stopping = stopping
        self._runs = [self._started(spark, pipeline, flow) for flow in pipeline.flows]

    def _started(self, spark: SparkSession, pipeline: Pipeline, flow: Flow) -> _FlowRun:
        last = self._state.status(flow.name)
        status = FlowStatus(flow.name, FlowState.RUNNING, last.batch)
        run = _FlowRun(FlowBatchWriter(pipeline, flow, self._stopping), status)
        try:
            checked = built(spark, pipeline, flow)
            run.readings = checked.readings
            run.start = partial(self._query, checked.frame, flow, run.writer)
            if isinstance(flow.input, JdbcInput):
                run.taking = _start_poller(spark, pipeline, flow)
            else:
                run.query = run.start()
        except Exception as error:  # any error stops only this flow
            run.status = replace(status, state=FlowState.FAILED, error=one_line_error(error))
        self._state.write_status(run.status)
        return run

    def _query(self, frame: DataFrame, flow: Flow, writer: FlowBatchWriter) -> StreamingQuery:
        stream = frame.writeStream.foreachBatch(writer).queryName(flow.name)
        stream = stream.option("checkpointLocation", uri(self._state.checkpoint(flow.name)))
        stream = stream.outputMode(flow.output_mode.value)
        return stream.trigger(**_trigger(flow.trigger)).start()

    def watch(self, watcher: Watcher) -> list[FlowStatus]:
        """Wait until all flows have ended."""
        while True:
            changed = [self._look(run) for run in self._runs]
            if any(changed):
                watcher([run.status for run in self._runs])
            if all(run.status.state is not FlowState.RUNNING for run in self._runs):
                return [run.status for run in self._runs]
            time.sleep(_POLL_S)

    def _look(self, run: _FlowRun) -> bool:
        """Update a flow's status; return whether it changed."""
        if run.status.state is not FlowState.RUNNING:
            return False
        if run.query is None:
            return self._noted(run, self._begun(run))
        if run.taking is not None and run.taking.error is not None:
            run.query.stop()
        active = run.query.isActive  # read first, so that the progress read after it is final
        if active and self._stopping.is_set() and not run.query.status["isTriggerActive"]:
            run.query.stop()
            active = False
        fresh = self._counted(run)
        if not active:
            if run.taking is not None:
                run.taking.stop()
            fresh = replace(fresh, **self._ending(run))
        return self._noted(run, fresh)

    def _noted(self, run: _FlowRun, fresh: FlowStatus) -> bool:
        """Keep a status, and write it if it changed; return whether it did."""
        if fresh == run.status:
            return False
        run.status = fresh
        self._state.write_status(fresh)
        return True

    def _begun(self, run: _FlowRun) -> FlowStatus:
        """Start a flow's query once the present rows of its database are read."""
        assert run.taking is not None, "it is waited for"
        assert run.start is not None, "it was built"
        if self._stopping.is_set():
            run.taking.stop()
            return replace(run.status, state=FlowState.STOPPED)
        if not run.taking.is_first_over:
            return run.status
        try:
            if run.taking.error is not None:
                raise run.taking.error
            run.query = run.start()
        except Exception as error:  # any error stops only this flow
            run.taking.stop()
            return replace(run.status, state=FlowState.FAILED, error=one_line_error(error))
        return run.status

    def _counted(self, run: _FlowRun) -> FlowStatus:
        assert run.query is not None, "the query was checked"
        status = replace(
            run.status,
            rows_out=run.writer.rows_out,
            dead_letters=run.writer.dead_letters,
            dropped=run.writer.dropped,
        )
        for progress in run.query.recentProgress:
            name = (progress.batchId, progress.timestamp)
            if run.seen is not None and name <= run.seen:
                continue
            run.seen = name
            status = _after(status, progress, run.readings)
        return status

    def _ending(self, run: _FlowRun) -> dict[str, Any]:
        """Return the final state of a flow."""
        assert run.query is not None, "it was started"
        # a failed database read has stopped the query, and with it a batch in progress
        failure = (run.taking and run.taking.error) or run.writer.error or run.query.exception()
        if failure is not None and not run.writer.stopped:
            return {"state": FlowState.FAILED, "error": one_line_error(failure)}
        return {"state": FlowState.STOPPED if self._stopping.is_set() else FlowState.DONE}

    def end(self) -> None:
        """Stop all queries."""
        for run in self._runs:
            if run.taking is not None:
                run.taking.stop()
            if run.query is not None and run.query.isActive:
                run.query.stop()


def _start_poller(spark: SparkSession, pipeline: Pipeline, flow: Flow) -> Taking:
    """Start to read the database's present rows, and later ones if the flow continues."""
    source = takes(spark, pipeline, flow)
    context = spark.sparkContext
    group = f"{flow.name}: take"  # its Spark jobs can be cancelled as a group

    def take() -> None:
        context.setJobGroup(group, f"{flow.name}: rows of {flow.source}", interruptOnCancel=True)
        source.take()

    goes_on = flow.trigger.kind is TriggerKind.INTERVAL
    every_s = interval_s(flow.trigger.interval) if goes_on else None
    return Taking(take, every_s, partial(context.cancelJobGroup, group))


def _trigger(trigger: Trigger) -> dict[str, Any]:
    match trigger.kind:
        case TriggerKind.ONCE:
            return {"once": True}
        case TriggerKind.AVAILABLE_NOW:
            return {"availableNow": True}
        case TriggerKind.INTERVAL:
            return {"processingTime": trigger.interval}


def _after(status: FlowStatus, progress: Any, readings: int) -> FlowStatus:
    """Return a flow's status after a batch."""
    sources = progress.sources
    return replace(
        status,
        batch=progress.batchId,
        rows_in=status.rows_in + progress.numInputRows // readings,
        rows_per_second=progress.processedRowsPerSecond / readings,
        lag=_lag([(source.endOffset, source.latestOffset) for source in sources]),
    )


def _lag(offsets: Collection[tuple[Any, Any]]) -> int | None:
    """Return the number of unread records of topics; None if unknown."""
    lags = [lag_of(parsed(end), parsed(latest)) for end, latest in offsets]
    known = [lag for lag in lags if lag is not None]
    return max(known) if known else None


def parsed(one_line_error: Any) -> Mapping[str, Mapping[str, int]] | None:
    """Return the offsets of a topic in Spark's form; None for those of files."""
    try:
        offsets = json.loads(one_line_error) if isinstance(one_line_error, str) else one_line_error
    except ValueError:
        return None
    if not isinstance(offsets, dict) or not all(
        isinstance(partitions, dict) for partitions in offsets.values()
    ):
        return None
    return positions_only(offsets)


def lag_of(
    end: Mapping[str, Mapping[str, int]] | None, latest: Mapping[str, Mapping[str, int]] | None
) -> int | None:
    """Return the number of offsets between two positions."""
    if end is None or latest is None:
        return None
    return sum(
        max(0, offset - end.get(topic, {}).get(partition, 0))
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )
