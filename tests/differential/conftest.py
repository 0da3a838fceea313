"""Apache Kafka 4.3.1 and Barnabas side by side, with the same settings."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from differential.brokers import pair_of_brokers
from differential.permissions import PRINCIPALS, user_of
from differential.secured import SecuredPair, secured_pair
from differential.world import Pair, World


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="differential-") as home, pair_of_brokers(Path(home)) as running:
        yield running


@pytest.fixture
def world(pair: Pair) -> Iterator[World]:
    with pair.world() as fresh:
        yield fresh


@pytest.fixture(scope="session")
def secured() -> Iterator[SecuredPair]:
    """Run both brokers with the users of the permission cases."""
    users = sorted(map(user_of, PRINCIPALS))
    with tempfile.TemporaryDirectory(prefix="secured-") as home, secured_pair(Path(home), users) as running:
        yield running
