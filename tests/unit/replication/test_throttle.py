from collections.abc import Callable

import pytest

from barnabas.base.clock import ManualClock
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.partition import Partition
from support.throttles import NO_LIMIT, throttle

Make = Callable[..., Partition]
SIZE_BYTES = 1_000


@pytest.fixture
def partition(make_partition: Make) -> Partition:
    """Return t-0 on broker 1; broker 2 is not in sync."""
    return make_partition((1, 2), PartitionRegistration(1, 0, (1,), replicas=(1, 2)))


@pytest.mark.parametrize(
    ("replicas", "applies"),
    [
        (("*",), True),
        (("0:1",), True),
        (("1:2", "0:1"), True),
        (("0:2",), False),
        (("1:1",), False),
        ((), False),
    ],
)
def test_a_throttle_applies_to_the_replicas_that_the_topic_names(
    partition: Partition, replicas: tuple[str, ...], applies: bool
) -> None:
    limited = throttle(1, *replicas)
    assert limited.applies_to(partition) is applies
    limited.record(partition, SIZE_BYTES)
    assert bool(limited.delay_ms(partition, 2)) is applies
    assert limited.statistics() == {"throttled_bytes": SIZE_BYTES * applies}


def test_below_the_limit_nothing_waits(partition: Partition) -> None:
    limited = throttle(SIZE_BYTES, "*")
    limited.record(partition, SIZE_BYTES)
    assert limited.delay_ms(partition, 2) == 0


def test_above_the_limit_the_wait_is_at_most_one_window_and_ends_with_the_windows(
    partition: Partition,
) -> None:
    clock = ManualClock()
    limited = throttle(10, "*", clock=clock)
    limited.record(partition, SIZE_BYTES)
    assert limited.delay_ms(partition, 2) == 1000
    clock.advance(1000)
    assert limited.delay_ms(partition, 2) == 1000
    clock.advance(3000)
    assert limited.delay_ms(partition, 2) == 0


def test_a_follower_in_sync_never_waits(partition: Partition) -> None:
    limited = throttle(1, "*")
    limited.record(partition, SIZE_BYTES)
    partition.update_state(PartitionRegistration(1, 0, (1, 2), 1, (1, 2)))
    assert limited.delay_ms(partition, 2) == 0


@pytest.mark.parametrize(("limit", "delay_ms"), [(0, 1000), (NO_LIMIT, 0)])
def test_the_extreme_limits_are_valid(partition: Partition, limit: int, delay_ms: int) -> None:
    limited = throttle(limit, "*")
    limited.record(partition, SIZE_BYTES)
    assert limited.delay_ms(partition, 2) == delay_ms
