from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.client.core.loop_thread import LoopThread
from unit.client.fake_broker import FakeBroker

Run = Callable[..., Result]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    """Run a fake broker on a loop of its own."""
    loop, broker = LoopThread("test"), FakeBroker()
    loop.run(broker.__aenter__())
    yield broker
    loop.run(broker.__aexit__())
    loop.stop()


@pytest.fixture
def run(broker: FakeBroker) -> Run:
    """Return a function that runs the command line against the fake broker; it returns exit code, stdout and
    stderr.
    """

    def invoke(*arguments: str) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": broker.bootstrap, "COLUMNS": "200"}
        return CliRunner().invoke(app, arguments, env=environment)

    return invoke
