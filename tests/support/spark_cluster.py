"""Spark in processes of its own, as pip installs it: a standalone cluster and a Spark Connect server."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark_barnabas.runtime.java import java_home
from pyspark_barnabas.runtime.submit import spark_home
from support.processes import descendants, kill_one
from support.spark import SETTINGS
from support.waiting import until

STOPS_WITHIN_S = 30
WORKERS_COUNT = 2
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"

#: Small sizes: the machine has few cores, and other processes run beside them.
DAEMON = {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": SETTINGS["spark.driver.extraJavaOptions"]}


def bare_environment() -> dict[str, str]:
    """Return this process's environment without paths to the packages under test."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")}
    return {**inherited, "JAVA_HOME": str(java_home(os.environ)), "SPARK_LOCAL_IP": "127.0.0.1", **DAEMON}


class SparkProcess:
    """Runs until it is stopped; its output is in a file."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )

    def has_printed(self, words: str) -> bool:
        """Whether its output contains these words; fails if it has ended without them."""
        text = self.log.read_text(errors="replace")
        assert words in text or self.process.poll() is None, text[-4000:]
        return words in text

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str], ready: str
) -> Iterator[SparkProcess]:
    """Run a process; return once it has printed that it is ready."""
    process = SparkProcess(command, log, environment)
    try:
        until(lambda: process.has_printed(ready))
        yield process
    finally:
        process.stop()


def spark_class(name: str, *arguments: str, host: str = "127.0.0.1") -> list[str]:
    program = str(spark_home() / "bin" / "spark-class")
    return [program, name, "--host", host, "--webui-port", "0", *arguments]


@dataclass
class Cluster:
    """A running Master with Workers."""

    url: str
    workers: list[SparkProcess]

    def kill_executor(self) -> bool:
        """Send SIGKILL to an executor of any application; return False if there is none at present."""
        return kill_one(pid for worker in self.workers for pid in descendants(worker.process.pid, EXECUTOR))


@contextmanager
def running_cluster(home: Path, port: int, workers_count: int = WORKERS_COUNT) -> Iterator[Cluster]:
    """Run a Master, and Workers with one core each.

    Each Worker has an address of its own, because Spark starts no second copy of a task on the host of the first.
    """
    environment = bare_environment()
    cluster = Cluster(f"spark://127.0.0.1:{port}", [])
    with ExitStack() as stack:
        master = spark_class(MASTER, "--port", str(port))
        stack.enter_context(running(master, home / "master.log", environment, "New state: ALIVE"))
        for number in range(workers_count):
            work = ["--cores", "1", "--memory", "1g", "--work-dir", str(home / f"worker-{number}")]
            worker = spark_class(WORKER, *work, cluster.url, host=f"127.0.0.{number + 1}")
            log = home / f"worker-{number}.log"
            ready = "Successfully registered with master"
            cluster.workers.append(stack.enter_context(running(worker, log, environment, ready)))
        yield cluster


@contextmanager
def running_connect(home: Path, port: int, settings: Mapping[str, str]) -> Iterator[str]:
    """Run a Spark Connect server in local mode, which finds this process's packages; return its URL."""
    paths = os.pathsep.join(filter(None, [*sys.path]))
    environment = {**bare_environment(), "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    all_settings = {
        **SETTINGS,
        **settings,
        "spark.connect.grpc.binding.port": str(port),
        "spark.log.level": "INFO",
    }
    options = [part for key, value in all_settings.items() for part in ("--conf", f"{key}={value}")]
    program = str(spark_home() / "bin" / "spark-submit")
    command = [program, "--master", "local[2]", *options, "--class", CONNECT, "spark-internal"]
    with running(command, home / "connect.log", environment, "Spark Connect server started"):
        yield f"sc://127.0.0.1:{port}"


def send_along(home: Path) -> Path:
    """Build an environment archive as venv-pack does; it records where it runs."""
    program = home / "environment" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\npwd >> {home}/runs\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    archive = home / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as packing:
        packing.add(home / "environment", ".")
    return archive
