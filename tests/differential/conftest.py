"""Apache Kafka 4.3.1 and Barnabas side by side, with the same settings."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from differential.brokers import pair_of_brokers
from differential.world import Pair, World


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="differential-") as home, pair_of_brokers(Path(home)) as running:
        yield running


@pytest.fixture
def world(pair: Pair) -> Iterator[World]:
    with pair.world() as fresh:
        yield fresh
