"""Pipelines under test: topics of their own, and a file that declares the flows."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO

from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.testing import EmbeddedBroker
from barnabas.wire.isolation import Isolation
from pyspark_barnabas.pipelines.declaration import Pipeline
from pyspark_barnabas.pipelines.engine import run_pipeline
from pyspark_barnabas.pipelines.parser import read_pipeline
from pyspark_barnabas.pipelines.state import FlowStatus
from support.spark import ROOT, worker_environment

WAIT_S = 150


class Scene(NamedTuple):
    """An input topic and the pipelines that read it."""

    spark: SparkSession
    broker: EmbeddedBroker
    home: Path
    source: str
    target: str
    dead: str

    def send(self, *values: bytes | None) -> None:
        with self.broker.client.producer() as producer:
            for number, value in enumerate(values):
                producer.send(self.source, value, partition=number % 2)

    def send_ids(self, first: int, end: int) -> None:
        self.send(*(json.dumps({"id": each, "kind": f"k{each % 3}"}).encode() for each in range(first, end)))

    def declare(self, flows: str) -> Path:
        """Write a file with these flows; topic names are substituted."""
        position = self.home / "pipelines.yml"
        text = flows.replace("SOURCE", self.source).replace("TARGET", self.target).replace("DEAD", self.dead)
        position.write_text(f"bootstrap: {self.broker.bootstrap}\nstate: state\nflows:\n{text}")
        return position

    @property
    def pipeline(self) -> Pipeline:
        return read_pipeline(self.home / "pipelines.yml")

    def run(self, flows: str, **options: Any) -> dict[str, FlowStatus]:
        """Run the flows that a file declares."""
        self.declare(flows)
        return {each.flow: each for each in run_pipeline(self.spark, self.pipeline, **options)}

    def raw_records(self, topic: str) -> list[tuple[bytes, dict[str, str]]]:
        starts = {TopicPartition(topic, index): EARLIEST for index in range(2)}
        consumer = self.broker.client.consumer(starts, stop_at_end=True, isolation=Isolation.READ_COMMITTED)
        return [
            (record.value or b"", {key: (value or b"").decode() for key, value in record.headers})
            for record in consumer
        ]

    def records(self, topic: str) -> list[tuple[str, dict[str, str]]]:
        return [(value.decode(), headers) for value, headers in self.raw_records(topic)]

    def remove_last_commit(self, flow: str) -> None:
        """Remove Spark's last commit entry, as if the driver had died after the sink's commit."""
        commits = self.home / "state" / flow / "checkpoint" / "commits"
        newest = max(commits.glob("[0-9]*"), key=lambda position: int(position.name))
        newest.unlink()
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


class Driver:
    """A process that runs `barnabas pipeline run` or another command; its errors may go to a terminal."""

    def __init__(
        self,
        file: Path,
        *arguments: str,
        command: str = "run",
        terminal: TextIO | None = None,
        directory: Path = ROOT,
    ) -> None:
        """A relative `file` is resolved against `directory`, the working directory."""
        self._log = directory / file.parent / f"{command}.log"
        called = ["pipeline", command, str(file), "--master", "local[2]", *arguments]
        called += ["--conf", "spark.driver.memory=700m"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "barnabas", *called],
                env={**os.environ, **worker_environment(), "TERM": "xterm"},
                stdout=log,
                stderr=log if terminal is None else terminal,
                start_new_session=True,
                cwd=directory,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, seen: Callable[[], bool]) -> None:
        end_s = time.monotonic() + WAIT_S
        while not seen():
            assert self.process.poll() is None, self.output[-4000:]
            assert time.monotonic() < end_s, self.output[-4000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """Send SIGKILL to it and its JVM; Python workers end with the JVM."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
