"""Objects of a worker after its first task are frozen for garbage collection; other processes are unchanged."""

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


def test_a_worker_freezes_its_objects_after_the_first_task() -> None:
    freeze_long_lived_objects({REUSED: "1"})
    assert gc.get_freeze_count() > 0


def test_later_tasks_freeze_nothing() -> None:
    freeze_long_lived_objects({REUSED: "1"})
    gc.unfreeze()
    freeze_long_lived_objects({REUSED: "1"})
    assert gc.get_freeze_count() == 0


def test_other_processes_are_not_changed() -> None:
    freeze_long_lived_objects({})
    assert gc.get_freeze_count() == 0


def test_the_process_that_creates_data_sources_freezes_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REUSED, "1")
    DefaultSource({}).schema()
    assert gc.get_freeze_count() > 0
