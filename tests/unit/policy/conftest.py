from collections.abc import Iterator
from pathlib import Path

import pytest

from support.policies import NAMING, PolicyModule, policy_module


@pytest.fixture
def naming(tmp_path: Path) -> Iterator[PolicyModule]:
    """A module whose class `Naming` wants topics to begin with "team."."""
    with policy_module(tmp_path, NAMING) as module:
        yield module
