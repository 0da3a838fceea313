from collections.abc import Iterator

import pytest

from barnabas.client.core.retry import Retry
from barnabas.testing import EmbeddedBroker
from support.spark_sink import Sink


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker in this process ends a transaction within a millisecond, and there are hundreds to wait for."""
    monkeypatch.setattr(Retry, "pause_ms", lambda self, attempts: 2.0)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with EmbeddedBroker(settings) as running:
        yield running


@pytest.fixture
def sink(broker: EmbeddedBroker) -> Sink:
    return Sink(broker.bootstrap)
