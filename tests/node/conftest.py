"""Tests on a real broker, over real sockets."""

from collections.abc import Iterator

import pytest

from barnabas.testing import EmbeddedBroker
from support.wire import Wire


@pytest.fixture
def wire(kafka: EmbeddedBroker) -> Iterator[Wire]:
    """Open a socket to the broker of `kafka`."""
    with Wire(kafka.port) as wire:
        yield wire
