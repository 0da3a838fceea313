"""Spark in more than one process, and its own Kafka connector."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import Broker, free_ports
from interop.targets import RUNNING
from pyspark.sql import SparkSession

from interop import connector, databases
from support.spark import running_session
from support.spark_cluster import Cluster, running_cluster
from support.spark_topics import KAFKA_PROPERTIES


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in local mode, which has the format "kafka" and drivers of databases."""
    jars = f"{connector.settings()['spark.jars']},{databases.drivers()}"
    with running_session({"spark.jars": jars}) as session:
        yield session


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone cluster."""
    [port] = free_ports(1)
    with running_cluster(tmp_path_factory.mktemp("cluster"), port) as running:
        yield running


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """Apache Kafka, whichever broker else is under test."""
    with RUNNING["kafka"](KAFKA_PROPERTIES) as running:
        yield running


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
