"""What all jobs need to run: a session of their own, a share of work for each task, and progress on the terminal."""

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

_Item = TypeVar("_Item")


@contextmanager
def job_session(name: str, master: str) -> Iterator[SparkSession]:
    """A quiet session that ends with the job; one in this process listens on loopback alone.

    :raises JavaNotFound: There is no Java to run it on.
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


@contextmanager
def progress(spark: SparkSession, what: str) -> Iterator[None]:
    """A bar of finished tasks on stderr while the block runs, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    ended = Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        watcher = Thread(target=_watch, args=(spark, bar, what, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _watch(spark: SparkSession, bar: Progress, what: str, ended: Event) -> None:
    shown = bar.add_task(what, total=None)
    tracker = spark.sparkContext.statusTracker()
    while not ended.wait(_POLL_S):
        stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        running = [each for each in stages if each is not None]
        if running:
            total = sum(each.numTasks for each in running)
            bar.update(shown, total=total, completed=sum(each.numCompletedTasks for each in running))


def distribute(items: Sequence[_Item], weight: Callable[[_Item], int], tasks_max: int) -> list[list[_Item]]:
    """The items in at most so many tasks of about the same weight, none of them empty."""
    tasks: list[list[_Item]] = [[] for _ in range(min(tasks_max, len(items)))]
    weights = [0] * len(tasks)
    for item in sorted(items, key=weight, reverse=True):
        lightest = weights.index(min(weights))
        tasks[lightest].append(item)
        weights[lightest] += weight(item) + 1
    return tasks
