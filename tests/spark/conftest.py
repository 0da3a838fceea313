"""One Spark session and one broker for all tests of the run; each test chooses its own topic names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.testing import EmbeddedBroker
from support.object_server import ObjectServer, object_server
from support.pipelines import Scene
from support.spark import running_session

#: Few partitions of internal topics are created faster on first use.
BROKER_SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.retention.ms": "-1",  # records of any age are kept
    "replica.high.watermark.checkpoint.interval.ms": "200",  # some tests wait for checkpoints
    "log.cleaner.backoff.ms": "20",  # or for the cleaner, and for imports
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Run Spark in local mode with two cores."""
    with running_session() as session:
        yield session


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """Run a broker in this process."""
    with EmbeddedBroker(BROKER_SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    """Run a server with the protocol of S3."""
    with object_server() as started:
        yield started


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    return (f"spark-{number}" for number in range(1_000_000))


@pytest.fixture
def topic(names: Iterator[str]) -> str:
    """Return the name of a topic that does not exist yet."""
    return next(names)


@pytest.fixture
def scene(spark: SparkSession, broker: EmbeddedBroker, names: Iterator[str], tmp_path: Path) -> Scene:
    """Return the topics of a pipeline."""
    made = Scene(spark, broker, tmp_path, next(names), next(names), next(names))
    for name in (made.source, made.target, made.dead):
        broker.create_topic(name, 2)
    return made
