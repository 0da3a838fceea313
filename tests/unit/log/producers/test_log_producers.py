"""Producer state after truncations."""

import random
from collections.abc import Callable

import pytest

from barnabas.log.append_info import AppendInfo
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers import log_producers, producer_recovery
from barnabas.log.producers.producer_state_manager import ProducerStateManager
from barnabas.wire.records.batch import BatchHeader

OpenLog = Callable[..., PartitionLog]
Produce = Callable[..., AppendInfo]


@pytest.fixture
def read_count(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that returns how many batches were read to restore states."""
    counts: list[BatchHeader] = []
    replay = producer_recovery.replay_batch

    def counted(states: ProducerStateManager, *batch: object) -> object:
        counts.append(batch[-1])  # type: ignore[arg-type]
        return replay(states, *batch)  # type: ignore[arg-type]

    monkeypatch.setattr(producer_recovery, "replay_batch", counted)
    return lambda: len(counts)


def states_of(log: PartitionLog) -> list[object]:
    """Return the producers with their last batches: a snapshot has no earlier ones."""
    return [
        (entry.producer_id, entry.producer_epoch, entry.last_offset, entry.batches[-1])
        for entry in sorted(log.producers.states.entries, key=lambda entry: entry.producer_id)
    ]


def test_a_truncation_reads_only_the_batches_after_the_last_copy_of_the_state(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch, read_count: Callable[[], int]
) -> None:
    monkeypatch.setattr(log_producers, "COPIED_AFTER_BATCHES", 10)
    log = open_log()
    for sequence in range(95):
        produce(log, b"x", producer_id=7, producer_epoch=0, base_sequence=sequence)
    log.truncate_to(94)
    assert read_count() == 4
    assert log.producers.states.active[0].last_sequence == 93
    log.truncate_to(82)
    assert read_count() == 4 + 2
    log.truncate_to(5)  # before both copies
    assert read_count() == 4 + 2 + 5
    assert produce(log, b"x", producer_id=7, producer_epoch=0, base_sequence=5).first_offset == 5


@pytest.mark.parametrize("seed", range(20))
def test_a_state_that_is_restored_from_a_copy_is_that_of_the_log(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(log_producers, "COPIED_AFTER_BATCHES", 7)
    rng = random.Random(seed)
    log = open_log()
    for _ in range(12):
        for _ in range(rng.randrange(20)):
            producer_id = rng.randrange(3)
            known = {entry.producer_id: entry.last_sequence for entry in log.producers.states.entries}
            sequence = known.get(producer_id, -1) + 1
            produce(log, b"x", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        if rng.random() < 0.2:
            log.roll()
        log.truncate_to(rng.randrange(log.log_end_offset + 1))
        restored = states_of(log)
        log.producers._copies.clear()
        log.producers.restore(log.log_start_offset, log.log_end_offset)
        assert restored == states_of(log)


def test_the_state_of_very_many_producers_is_not_copied(
    open_log: OpenLog, produce: Produce, monkeypatch: pytest.MonkeyPatch, read_count: Callable[[], int]
) -> None:
    monkeypatch.setattr(log_producers, "COPIED_AFTER_BATCHES", 10)
    monkeypatch.setattr(log_producers, "COPIED_PRODUCERS_MAX", 2)
    log = open_log()
    for producer_id in range(30):
        produce(log, b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    log.truncate_to(29)
    assert read_count() == 29
