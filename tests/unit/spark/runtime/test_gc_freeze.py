"""What a worker has after its first task is left out of later collections, and nothing is in other processes."""

import gc
from collections.abc import Iterator

import pytest

from pyspark_barnabas import DefaultSource
from pyspark_barnabas.runtime import gc_freeze as lasting
from pyspark_barnabas.runtime.gc_freeze import REUSED, freeze_long_lived_objects


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    lasting._freeze.cache_clear()
    yield
    gc.unfreeze()
    lasting._freeze.cache_clear()


def test_a_worker_spares_what_it_has_after_its_first_task() -> None:
    freeze_long_lived_objects({REUSED: "1"})
    assert gc.get_freeze_count() > 0


def test_later_tasks_spare_nothing_more() -> None:
    freeze_long_lived_objects({REUSED: "1"})
    gc.unfreeze()
    freeze_long_lived_objects({REUSED: "1"})
    assert gc.get_freeze_count() == 0


def test_a_process_of_somebody_else_is_left_as_it_is() -> None:
    freeze_long_lived_objects({})
    assert gc.get_freeze_count() == 0


def test_the_process_that_makes_data_sources_spares_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REUSED, "1")
    DefaultSource({}).schema()
    assert gc.get_freeze_count() > 0
