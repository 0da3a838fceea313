import asyncio
from collections.abc import Sequence

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.group_lags import LagTotal, PartitionLag
from barnabas.console import lag_sampler
from barnabas.console.lag_sampler import GROUPS_MAX, SAMPLES_MAX, LagSample, LagSampler
from barnabas.wire.errors import ErrorCode, KafkaError


def lag_of(records_count: int, topic: str = "t") -> list[PartitionLag]:
    return [PartitionLag(TopicPartition(topic, 0), OffsetAndMetadata(10, -1, ""), 10 + records_count)]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def sampler(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> LagSampler:
    """Return a sampler that only the test drives; every group has a lag of three records."""

    async def ask(cluster: ClusterClient, names: Sequence[str]) -> dict[str, list[PartitionLag]]:
        return {name: lag_of(3) for name in names}

    monkeypatch.setattr(lag_sampler, "lags_of", ask)
    monkeypatch.setattr(LagSampler, "_sample_always", lambda self: asyncio.sleep(0))
    return LagSampler(ClusterClient("127.0.0.1:1"), clock)


def test_a_page_view_takes_a_sample_but_not_too_often(sampler: LagSampler, clock: ManualClock) -> None:
    async def look() -> None:
        sampler.look({"g": lag_of(5)})
        sampler.look({"g": lag_of(6)})
        clock.advance(4_000)
        sampler.look({"g": lag_of(7)})

    asyncio.run(look())
    assert sampler.of("g") == [
        LagSample(1_000_000, {"t": LagTotal(5, 0)}),
        LagSample(1_004_000, {"t": LagTotal(7, 0)}),
    ]
    assert sampler.of("other") == []


def test_groups_are_sampled_while_they_were_viewed_recently(sampler: LagSampler, clock: ManualClock) -> None:
    async def go_on() -> None:
        sampler.look({"g": lag_of(5)})
        clock.advance(15_000)
        await sampler.sample()
        assert [sample.total for sample in sampler.of("g")] == [5, 3]
        clock.advance(60 * 60_000)
        await sampler.sample()

    asyncio.run(go_on())
    assert sampler.statistics() == {"groups": 0, "samples": 0, "failed": 0}


def test_groups_and_samples_are_bounded(sampler: LagSampler, clock: ManualClock) -> None:
    async def look() -> None:
        for _ in range(SAMPLES_MAX + 5):
            clock.advance(5_000)
            sampler.look({"first": lag_of(1)})
        assert len(sampler.of("first")) == SAMPLES_MAX
        sampler.look({f"g{index}": lag_of(1) for index in range(GROUPS_MAX)})

    asyncio.run(look())
    assert sampler.of("first") == []
    assert sampler.statistics()["groups"] == GROUPS_MAX


def test_a_group_without_describe_permission_has_no_samples(sampler: LagSampler) -> None:
    async def look() -> None:
        sampler.look({"g": KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "no")})
        await sampler.stop()

    asyncio.run(look())
    assert sampler.of("g") == []


def test_a_sample_is_a_lower_bound_while_the_lag_of_a_partition_is_unknown() -> None:
    assert not LagSample(1, {"t": LagTotal(5, 0)}).is_lower_bound
    unclear = LagSample(1, {"t": LagTotal(5, 0), "u": LagTotal(2, 1)})
    assert (unclear.total, unclear.is_lower_bound) == (7, True)
