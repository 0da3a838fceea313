"""Spark in several processes, and its own Kafka connector."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import Broker, free_ports
from interop.targets import RUNNING
from pyspark.sql import SparkSession

from barnabas.testing import EmbeddedBroker
from interop import connector, databases
from support.pipelines import Scene
from support.spark import running_session
from support.spark_cluster import Cluster, running_cluster
from support.spark_topics import KAFKA_PROPERTIES


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Run Spark in local mode with the format "kafka" and database drivers."""
    jars = f"{connector.settings()['spark.jars']},{databases.drivers()}"
    with running_session({"spark.jars": jars}) as session:
        yield session


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a standalone cluster."""
    [port] = free_ports(1)
    with running_cluster(tmp_path_factory.mktemp("cluster"), port) as running:
        yield running


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """Run Apache Kafka, whichever broker else is under test."""
    with RUNNING["kafka"](KAFKA_PROPERTIES) as running:
        yield running


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with EmbeddedBroker(settings) as running:
        yield running


@pytest.fixture
def scene(spark: SparkSession, embedded: EmbeddedBroker, tmp_path: Path) -> Scene:
    """Return a pipeline's topics, named after the test."""
    test = re.sub("[^A-Za-z0-9]", "-", tmp_path.name)
    names = [f"{test}-{name}" for name in ("source", "target", "dead")]
    for name in names:
        embedded.create_topic(name, 2)
    return Scene(spark, embedded, tmp_path, *names)
