"""Waiting until a cluster shows applied changes."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.declared import apply, plan
from barnabas.declared.apply import ChangeResult, ChangeStatus
from barnabas.declared.diff import diff_states
from barnabas.declared.plan import PlanRequest
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import ClusterState, TopicState

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
