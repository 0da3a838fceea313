"""Retries of changes, and waiting until a cluster shows them."""

import asyncio
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.base.clock import ManualClock
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import NewTopic
from barnabas.client.core.errors import ThrottlingQuotaExceeded
from barnabas.client.core.retry import Retry
from barnabas.declared import apply, plan
from barnabas.declared.apply import ChangeResult, ChangeStatus
from barnabas.declared.diff import diff_states
from barnabas.declared.executor import tasks_of
from barnabas.declared.plan import PlanRequest
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import ClusterState, TopicState
from barnabas.quotas.mutations import ControllerMutationQuota
from barnabas.quotas.rate import Windows
from barnabas.quotas.token_bucket import TokenBucket
from barnabas.wire.errors import ErrorCode, KafkaError

COUNT = 40
DECLARED = ClusterState(topics={f"t{number}": TopicState(1) for number in range(COUNT)})


def visible_statuses(monkeypatch: pytest.MonkeyPatch, shown_count_max: int) -> list[tuple[ChangeStatus, str]]:
    """Return the statuses of topics when a cluster shows one more at each call, up to a limit."""
    looks = 0

    async def look(*_: object) -> ClusterState:
        nonlocal looks
        looks += 1
        return ClusterState(topics=dict(list(DECLARED.topics.items())[: min(looks, shown_count_max)]))

    async def pause(attempts: int) -> None:
        assert attempts

    monkeypatch.setattr(plan, "live_state_for", look)
    admin = cast("Admin", SimpleNamespace(cluster=SimpleNamespace(retry=SimpleNamespace(pause=pause))))
    made: list[Any] = [
        ChangeResult(each, ChangeStatus.DONE) for each in diff_states(DECLARED, ClusterState())
    ]
    request = PlanRequest(DECLARED, cast("Secrets", None))
    return [(each.status, each.reason) for each in asyncio.run(apply._verified(admin, made, request))]


def test_a_cluster_is_awaited_while_it_makes_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(visible_statuses(monkeypatch, COUNT)) == {(ChangeStatus.DONE, "")}


def test_changes_that_are_never_visible_have_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = visible_statuses(monkeypatch, COUNT - 1)
    failed = [reason for status, reason in found if status is ChangeStatus.FAILED]
    assert set(failed) == {"accepted, but not visible in the cluster yet"}
    assert len(failed) == len(found) // COUNT


class FakeCluster:
    """Creates topics on virtual time, within a quota of partitions per second; `error` is the error of every topic."""

    def __init__(self, mutation_rate: float, partitions: int = 1, error: KafkaError | None = None) -> None:
        self.clock = ManualClock()
        self.topics: set[str] = set()
        self.requests_count = 0
        self._partitions = partitions
        self._error = error
        self._bucket = TokenBucket(Windows(11, 1_000), mutation_rate, self.clock.monotonic_ms())

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(round(seconds * 1000))

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool
    ) -> dict[str, KafkaError | None]:
        assert not validate_only
        self.requests_count += 1
        quota = ControllerMutationQuota(self._bucket, self.clock.monotonic_ms(), is_strict=True)
        requested = list(topics)
        admit = quota.admit(requested)
        refused = {topic.name for topic in requested if not self._create(topic.name, admit)}
        throttled = ThrottlingQuotaExceeded("", quota.commit())
        return {topic.name: throttled if topic.name in refused else self._error for topic in requested}

    def _create(self, name: str, admit: Callable[[int], None]) -> bool:
        try:
            admit(self._partitions)
        except KafkaError:
            return False
        if self._error is None:
            self.topics.add(name)
        return True

    def apply(self, declared: ClusterState) -> dict[object, KafkaError | None]:
        """Return the error of each topic."""
        retry = Retry(clock=self.clock, sleep=self.sleep)
        fake = SimpleNamespace(cluster=SimpleNamespace(retry=retry), create_topics=self.create_topics)
        tasks = tasks_of(diff_states(declared, ClusterState()))
        work = apply._execute_with_retries(cast("Admin", fake), tasks, cast("Secrets", None))
        return dict(asyncio.run(work))


def test_throttled_changes_are_retried_after_the_throttle_time_until_all_are_made() -> None:
    cluster = FakeCluster(mutation_rate=1)
    assert set(cluster.apply(DECLARED).values()) == {None}
    assert len(cluster.topics) == COUNT
    assert cluster.requests_count <= COUNT


def test_a_throttle_time_of_minutes_is_awaited() -> None:
    declared = ClusterState(topics={name: TopicState(200) for name in ("a", "b", "c")})
    cluster = FakeCluster(mutation_rate=1, partitions=200)
    assert set(cluster.apply(declared).values()) == {None}
    assert cluster.requests_count == 3


def test_a_throttle_time_that_is_too_long_is_not_awaited() -> None:
    declared = ClusterState(topics={name: TopicState(200) for name in ("a", "b")})
    cluster = FakeCluster(mutation_rate=0.01, partitions=200)
    [made, throttled] = cluster.apply(declared).values()
    assert made is None
    assert isinstance(throttled, ThrottlingQuotaExceeded)
    assert cluster.requests_count == 1


def test_other_transient_errors_are_retried_for_half_a_minute() -> None:
    cluster = FakeCluster(1_000, error=KafkaError(ErrorCode.NOT_CONTROLLER))
    start_ms = cluster.clock.monotonic_ms()
    errors = cluster.apply(ClusterState(topics={"a": TopicState(1)}))
    assert [error and error.code for error in errors.values()] == [ErrorCode.NOT_CONTROLLER]
    assert 25_000 < cluster.clock.monotonic_ms() - start_ms <= 30_000
