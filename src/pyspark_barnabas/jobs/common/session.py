"""Running of jobs: their Spark session, distribution of work to tasks, and a progress bar on the terminal."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pyspark_barnabas.runtime.session import spark_session

_POLL_S = 0.5
#: In Spark's message for the failed task.
_ERROR_FOR_USERS = re.compile(r"pyspark_barnabas\.BarnabasError: (.*)")

_Item = TypeVar("_Item")


@contextmanager
def job_session(name: str, master: str) -> Iterator[SparkSession]:
    """Start a Spark session that ends with the job and logs only errors; a local one listens on loopback only.

    :raises JavaNotFound: No Java runtime was found.
    """
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    session = spark_session(f"barnabas-{name}", master=master, settings=settings)
    try:
        yield session
    finally:
        session.stop()


class TaskError(OSError):
    """A task failed for a reason that the message explains."""


@contextmanager
def progress(spark: SparkSession, description: str) -> Iterator[None]:
    """Show a bar of finished tasks on stderr while the block runs, if stderr is a terminal.

    :raises TaskError: A task raised a `BarnabasError`.
    """
    try:
        with _bar(spark, description):
            yield
    except Exception as error:
        if found := _ERROR_FOR_USERS.search(str(error)):
            raise TaskError(found[1]) from error
        raise


@contextmanager
def _bar(spark: SparkSession, description: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    ended = Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        watcher = Thread(target=_watch, args=(spark, bar, description, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _watch(spark: SparkSession, bar: Progress, description: str, ended: Event) -> None:
    task = bar.add_task(description, total=None)
    tracker = spark.sparkContext.statusTracker()
    while not ended.wait(_POLL_S):
        stages = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
        running = [stage for stage in stages if stage is not None]
        if running:
            total = sum(stage.numTasks for stage in running)
            bar.update(task, total=total, completed=sum(stage.numCompletedTasks for stage in running))


def distribute(items: Sequence[_Item], weight: Callable[[_Item], int], tasks_max: int) -> list[list[_Item]]:
    """Distribute items over at most `tasks_max` tasks of about equal weight; no task is empty."""
    tasks: list[list[_Item]] = [[] for _ in range(min(tasks_max, len(items)))]
    weights = [0] * len(tasks)
    for item in sorted(items, key=weight, reverse=True):
        lightest = weights.index(min(weights))
        tasks[lightest].append(item)
        weights[lightest] += weight(item) + 1
    return tasks
