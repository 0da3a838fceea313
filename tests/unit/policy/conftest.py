from collections.abc import Iterator
from pathlib import Path

import pytest

from support.policies import NAMING, PolicyModule, policy_module


@pytest.fixture
def naming(tmp_path: Path) -> Iterator[PolicyModule]:
    """Write a module whose class `Naming` requires topic names to start with "team."."""
    with policy_module(tmp_path, NAMING) as module:
        yield module
