"""Archives in an object store, and commands that write them."""

import os
import subprocess
import sys
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.objects.location import ObjectLocation, parse_location
from barnabas.objects.opening import open_store
from barnabas.objects.store import ObjectStore
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive.job import Archived, archive
from pyspark_barnabas.jobs.archive.object_target import manifest_key
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.restore.plan import Request
from support.object_server import ObjectServer
from support.source_rows import SourceRow, frame_rows
from support.spark import worker_environment

WAIT_S = 180
_NUMBERS = count(1)


class Killed(BaseException):
    """No handler catches it: like a kill, it leaves everything as it is."""


class Bucket:
    """An archive in a bucket of its own, of a topic with two partitions."""

    def __init__(
        self,
        server: ObjectServer,
        broker: EmbeddedBroker,
        spark: SparkSession,
        topic: str,
        kind: str = "parquet",
    ) -> None:
        self.server, self.broker, self.spark, self.topic = server, broker, spark, topic
        self.kind = kind
        self.location = parse_location(f"{server.create_bucket(f'archives-{next(_NUMBERS)}')}/of/topics")
        assert isinstance(self.location, ObjectLocation)
        self.store: ObjectStore = open_store(self.location, server.settings)
        self.target: Any = open_archive(self.location, kind, server.settings)
        self.options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
        broker.create_topic(topic, 2)

    def archive(self) -> Archived:
        return archive(self.spark, self.options, self.location, settings=self.server.settings, kind=self.kind)

    def command(self, job_name: str, *arguments: str) -> list[str]:
        location = ["--archive", str(self.location)] if job_name == "scrub" else [str(self.location)]
        return ["jobs", job_name, *location, *self.server.arguments, *arguments]

    def request(self, name: str, run: int | None = None) -> Request:
        return Request(
            self.options, self.location, [self.topic], name, run=run, settings=self.server.settings
        )

    def rows(self) -> list[SourceRow]:
        return frame_rows(self.target.records(self.spark))

    def stored_keys(self) -> set[str]:
        return {key for key, _ in self.store.list()}

    def listed_keys(self) -> set[str]:
        """Return the manifests, and the files that they list."""
        runs = self.target.runs()
        return {manifest_key(run) for run in runs} | {
            file.key for run in runs for file in self.target.files_of(self.target.manifest(run))
        }


def run_command(arguments: list[str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Result:
    with monkeypatch.context() as patch:
        patch.setattr(running, "job_session", lambda *_: nullcontext(spark))
        return CliRunner().invoke(app, arguments)


def start_command(arguments: list[str], prelude: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a command in a process of its own."""
    program = f"{prelude}\nfrom barnabas.cli.main import main; main()"
    environment = {**os.environ, **worker_environment()}
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", program, *arguments], env=environment, stdout=output, stderr=output
        )
