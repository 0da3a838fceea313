"""`barnabas pipeline`: run pipelines from topics and files through SQL or Python to topics and tables.

Spark, which may not be installed, is imported only by the functions that need it.
"""

import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.options import Json, key_value_pairs
from barnabas.cli.support.output import print_json, print_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_barnabas.pipelines.declaration import Pipeline
    from pyspark_barnabas.pipelines.engine import Watcher
    from pyspark_barnabas.pipelines.planning import FlowPlan
    from pyspark_barnabas.pipelines.state import FlowStatus

_COLUMNS = ("flow", "state", "batch", "read", "written", "dead letters", "dropped", "rows/s", "lag", "error")
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
#: Logs each SQL error with its plan and stack; it is silenced, because flows report their errors themselves.
_ERRORS_LOGGER = "SQLQueryContextLogger"
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

File = Annotated[
    Path, typer.Argument(metavar="PIPELINES.YML", help="File that declares the pipeline.", show_default=False)
]
Master = Annotated[str, typer.Option(help="Spark master: local[N], or spark://HOST:7077.")]
Setting = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting; may be repeated.")
]


@command("run", example="pipeline run pipelines.yml")
def run(
    file: File,
    master: Master = "local[*]",
    conf: Setting = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of 127.0.0.1 for Prometheus metrics (default: no metrics)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run all flows from where they stopped; on Ctrl-C or SIGTERM, each flow finishes its current batch.

    Exits with 1 if a flow failed; the other flows continue.
    """
    check_spark_installed()
    from pyspark_barnabas.pipelines.engine import run_pipeline
    from pyspark_barnabas.pipelines.state import FlowState, PipelineRuns

    pipeline = _read(file)
    with (
        _metrics(metrics_port) as metrics,
        _session(master, conf or ()) as spark,
        _bars() as bars,
        _stopping() as stopping,
    ):

        def watch(statuses: "Collection[FlowStatus]") -> None:
            metrics(statuses)
            bars(statuses)

        try:
            statuses = run_pipeline(spark, pipeline, stopping=stopping, watcher=watch)
        except PipelineRuns as error:
            raise CommandError(
                str(error), hint=f"'barnabas pipeline status {file}' shows its status"
            ) from None
    _show(statuses, as_json=as_json)
    failed = [flow.flow for flow in statuses if flow.state is FlowState.FAILED]
    if failed:
        raise CommandError(f"{len(failed)} of {len(statuses)} flows failed: {', '.join(failed)}")


@command("plan", example="pipeline plan pipelines.yml")
def plan(file: File, master: Master = "local[*]", conf: Setting = None, as_json: Json = False) -> None:
    """Show what a run would read, create and write, without running it; exits with 1 if a flow would fail."""
    check_spark_installed()
    from pyspark_barnabas.pipelines.planning import pipeline_plan

    pipeline = _read(file)
    with _session(master, conf or ()) as spark:
        plans = pipeline_plan(spark, pipeline)
    if as_json:
        print_json([asdict(flow_plan) for flow_plan in plans])
    else:
        print("\n\n".join("\n".join(_plan_lines(flow_plan)) for flow_plan in plans))
    failed = [flow_plan.flow for flow_plan in plans if flow_plan.error is not None]
    if failed:
        raise CommandError(f"{len(failed)} of {len(plans)} flows would fail: {', '.join(failed)}")


@command("status", example="pipeline status pipelines.yml")
def status(file: File, as_json: Json = False) -> None:
    """Show the status of each flow, whether or not the pipeline is running."""
    check_spark_installed()
    from pyspark_barnabas.pipelines.state import pipeline_status

    _show(pipeline_status(_read(file)), as_json=as_json)


def _read(file: Path) -> "Pipeline":
    from pyspark_barnabas.pipelines.parser import read_pipeline

    file.stat()  # a missing file is reported as not found, not as invalid
    return read_pipeline(file)


def _show(statuses: "Sequence[FlowStatus]", *, as_json: bool) -> None:
    from pyspark_barnabas.pipelines.state import status_json

    if as_json:
        print_json([status_json(flow) for flow in statuses])
        return
    print_table(_COLUMNS, [_row(flow) for flow in statuses])


def _row(status: "FlowStatus") -> tuple[object, ...]:
    return (
        status.flow,
        status.state.value,
        "-" if status.batch is None else status.batch,
        status.rows_in,
        status.rows_out,
        status.dead_letters,
        status.dropped,
        round(status.rows_per_second),
        "-" if status.lag is None else status.lag,
        status.error or "-",
    )


def _plan_lines(plan: "FlowPlan") -> Iterator[str]:
    yield f"{plan.flow}: {plan.source} -> {plan.sink} ({plan.trigger})"
    if plan.error is not None:
        yield f"  would fail: {plan.error}"
        return
    yield f"  rows: {plan.schema}"
    for expectation in plan.expectations:
        yield f"  expects {expectation}"
    if plan.dead_letters is not None:
        yield f"  dead letters: topic {plan.dead_letters}"
    for topic, partition, start, end in plan.offsets:
        yield f"  reads {topic}-{partition} from {start} to {end}: {max(0, end - start)} offsets"


@contextlib.contextmanager
def _session(master: str, conf: Sequence[str]) -> "Iterator[SparkSession]":
    from pyspark.logger import PySparkLogger

    from pyspark_barnabas.runtime.java import JavaNotFound
    from pyspark_barnabas.runtime.session import spark_session

    loopback = _LOOPBACK if master.startswith("local") else {}
    settings = {**_QUIET, **loopback, **dict(key_value_pairs(list(conf), "--conf"))}
    PySparkLogger.getLogger(_ERRORS_LOGGER).setLevel(logging.CRITICAL)
    try:
        spark = spark_session("barnabas-pipeline", master=master, settings=settings)
    except JavaNotFound as error:
        raise CommandError(str(error)) from error
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def _stopping() -> Iterator[Event]:
    """Yield an event that SIGINT and SIGTERM set; a second signal has its default action."""
    event = Event()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:
        event.set()
        signal.signal(number, signal.SIG_DFL)

    for number in handlers:
        signal.signal(number, stop)
    try:
        yield event
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _metrics(port: int | None) -> "Iterator[Watcher]":
    if port is None:
        yield lambda statuses: None
        return
    from pyspark_barnabas.pipelines.metrics import PipelineMetricsServer

    with PipelineMetricsServer(port) as server:
        print(f"metrics: http://127.0.0.1:{server.port}/metrics", file=sys.stderr)
        yield server.take


@contextlib.contextmanager
def _bars() -> "Iterator[Callable[[Collection[FlowStatus]], None]]":
    """Yield a function that shows a progress bar for each flow: rows read and lag; only on a terminal."""
    if not sys.stderr.isatty():
        yield lambda statuses: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def show(statuses: "Collection[FlowStatus]") -> None:
            for flow in statuses:
                if flow.flow not in tasks:
                    tasks[flow.flow] = bar.add_task(flow.flow, total=None, status="")
                text = f"{flow.state.value} {flow.rows_per_second:,.0f} rows/s"
                total = None if flow.lag is None else flow.rows_in + flow.lag
                bar.update(tasks[flow.flow], completed=flow.rows_in, total=total, status=text)

        yield show


app = command_group(run, plan, status)
