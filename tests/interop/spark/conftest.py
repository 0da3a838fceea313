"""Spark in more than one process, and its own Kafka connector."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import free_ports
from pyspark.sql import SparkSession

from interop import connector
from support.spark import running_session
from support.spark_cluster import running_cluster


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Spark in local mode, which has the format "kafka"."""
    with running_session(connector.settings()) as session:
        yield session


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a standalone cluster's master."""
    [port] = free_ports(1)
    with running_cluster(tmp_path_factory.mktemp("cluster"), port) as running:
        yield running.url


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
