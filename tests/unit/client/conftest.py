from collections.abc import Iterator

import pytest

from barnabas.client.core.loop_thread import LoopThread
from unit.client.fake_broker import FakeBroker


@pytest.fixture
def threaded_broker() -> Iterator[FakeBroker]:
    """Run a fake broker on a loop of its own, for blocking clients."""
    loop, broker = LoopThread("test"), FakeBroker()
    loop.run(broker.__aenter__())
    yield broker
    loop.run(broker.__aexit__())
    loop.stop()
