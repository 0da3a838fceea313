from collections.abc import Iterator

import pytest

from barnabas.testing import EmbeddedBroker
from support.spark_sink import Sink


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with EmbeddedBroker(settings) as running:
        yield running


@pytest.fixture
def sink(broker: EmbeddedBroker) -> Sink:
    return Sink(broker.bootstrap)
