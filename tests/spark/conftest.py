"""One Spark session and one broker for all tests of the run: whoever uses them picks topic names of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.testing import EmbeddedBroker
from support.pipelines import Scene
from support.spark import running_session

#: The broker's own topics are made when first used, and with fewer partitions they are made sooner.
BROKER_SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.retention.ms": "-1",  # records of any age stay
    "replica.high.watermark.checkpoint.interval.ms": "200",  # some tests wait for checkpoints
    "log.cleaner.backoff.ms": "20",  # or for the cleaner, and for replacements to be taken over
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in local mode with two cores."""
    with running_session() as session:
        yield session


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """A broker in this process."""
    with EmbeddedBroker(BROKER_SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    return (f"spark-{number}" for number in range(1_000_000))


@pytest.fixture
def topic(names: Iterator[str]) -> str:
    """The name of a topic that does not exist yet."""
    return next(names)


@pytest.fixture
def scene(spark: SparkSession, broker: EmbeddedBroker, names: Iterator[str], tmp_path: Path) -> Scene:
    """What pipelines read and write."""
    made = Scene(spark, broker, tmp_path, next(names), next(names), next(names))
    for name in (made.source, made.target, made.dead):
        broker.create_topic(name, 2)
    return made
