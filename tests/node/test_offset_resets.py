"""Targets of offset resets on a broker."""

import asyncio
from collections.abc import Callable

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offset_resets import Shift, Target, reset_offsets
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec
from barnabas.client.core.cluster import ClusterClient
from barnabas.testing import EmbeddedBroker

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)
Reset = Callable[[Target], dict[TopicPartition, int]]


@pytest.fixture
def reset(kafka: EmbeddedBroker) -> Reset:
    """Return a function that resets a group at offset 4 of ten records, the first two deleted, and in an empty
    partition.
    """
    kafka.create_topic("t", 2)
    for number in range(10):
        kafka.produce("t", b"x", partition=0, timestamp_ms=1_000 + number)
    kafka.client.admin.delete_records({HERE: 2})

    async def ask(target: Target) -> dict[TopicPartition, int]:
        async with ClusterClient(kafka.bootstrap) as cluster:
            return await reset_offsets(cluster, {HERE: 4, THERE: None}, target)

    return lambda target: asyncio.run(ask(target))


def test_a_reset_to_the_start_and_end_of_logs(reset: Reset) -> None:
    assert reset(EARLIEST) == {HERE: 2, THERE: 0}
    assert reset(LATEST) == {HERE: 10, THERE: 0}


def test_a_reset_to_an_offset_is_limited_to_each_log(reset: Reset) -> None:
    assert reset(0) == {HERE: 2, THERE: 0}
    assert reset(7) == {HERE: 7, THERE: 0}
    assert reset(99) == {HERE: 10, THERE: 0}


def test_a_shift_starts_at_the_committed_offset_and_is_limited_to_each_log(reset: Reset) -> None:
    assert reset(Shift(3)) == {HERE: 7, THERE: 0}
    assert reset(Shift(-1)) == {HERE: 3, THERE: 0}
    assert reset(Shift(-9)) == {HERE: 2, THERE: 0}


def test_a_reset_to_a_time_after_the_last_record_is_the_log_end(reset: Reset) -> None:
    assert reset(OffsetSpec.at(1_006)) == {HERE: 6, THERE: 0}
    assert reset(OffsetSpec.at(5_000)) == {HERE: 10, THERE: 0}
