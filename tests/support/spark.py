"""Spark in this process: its JVM on loopback only, its Python workers with the imports of these tests."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext
from pyspark.sql import SparkSession

from pyspark_barnabas.runtime.session import local_settings, prepare

ROOT = Path(__file__).resolve().parents[2]
JVM_STOPS_S = 30

#: Where Spark reads its defaults.
CONF = ROOT / "tests" / "support" / "spark_conf"
_LINES = (CONF / "spark-defaults.conf").read_text().splitlines()
SETTINGS: Mapping[str, str] = dict(line.split(None, 1) for line in _LINES if not line.startswith("#"))


def worker_environment() -> dict[str, str]:
    """Return the environment of drivers and Python workers: the packages under test, this interpreter, `SETTINGS`."""
    paths = [str(ROOT / "src"), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(CONF),
    }


@contextmanager
def running_session(
    settings: Mapping[str, str] | None = None, master: str = "local[2]"
) -> Iterator[SparkSession]:
    """Run a session with a JVM of its own, which ends with the block; one at a time in a process.

    In local mode it has the settings of our own sessions, elsewhere those of Spark.
    """
    os.environ |= worker_environment()
    prepare(os.environ)
    with TemporaryDirectory(prefix="barnabas-spark-", ignore_cleanup_errors=True) as home:
        builder = SparkSession.builder.master(master).appName("barnabas-tests")
        partitions = {"spark.local.dir": f"{home}/local", "spark.sql.warehouse.dir": f"{home}/warehouse"}
        for key, value in {**local_settings(master), **partitions, **(settings or {})}.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
            end_jvm()


def end_jvm() -> None:
    """End the JVM that this process started, through py4j's handle."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        process.wait(JVM_STOPS_S)
