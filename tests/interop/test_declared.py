"""Declared states on Apache Kafka as on Barnabas, with the same code."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from interop.brokers import Broker
from interop.targets import BROKERS_COUNT, RUNNING

from barnabas.base.clock import SystemClock
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.declared.apply import ChangeStatus
from barnabas.declared.diff import Level
from barnabas.declared.live import whole_state
from barnabas.declared.parser import read_state
from barnabas.declared.plan import PlanRequest, make_plan
from barnabas.declared.renderer import to_tree, to_yaml
from barnabas.declared.state import PRUNABLE, ClusterState, TopicState
from support.declared import SECRETS, SECURED, LostConnection, applied, enriched, grown
from support.declared_states import states

MANY = settings(max_examples=6, deadline=None, phases=(Phase.explicit, Phase.generate))


@pytest.fixture(scope="module", params=list(RUNNING))
def secured(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with RUNNING[request.param](SECURED) as running:
        yield running


def test_the_plan_after_an_export_is_empty(secured: Broker, tmp_path: Path) -> None:
    enriched(secured.bootstrap)
    file = tmp_path / "cluster.yaml"

    async def work() -> ClusterState:
        async with ClusterClient(secured.bootstrap) as cluster:
            admin = Admin(cluster)
            exported = await whole_state(admin)
            file.write_text(to_yaml(to_tree(exported)))
            declared = replace(read_state(file), prune=frozenset(PRUNABLE))
            assert (await make_plan(admin, PlanRequest(declared, SECRETS), SystemClock())).changes == []
            return exported

    found = asyncio.run(work())
    assert found.topics["orders"].configs == {"cleanup.policy": "compact,delete", "retention.ms": "86400000"}
    sizes = (
        len(found.acls),
        len(found.quotas),
        len(found.users),
        len(found.groups),
        len(found.client_metrics),
    )
    assert sizes == (4, 3, 2, 1, 1)
    own = {"min.insync.replicas": "1"} if secured.kind == "kafka" else {}  # set by Kafka itself (KIP-966)
    assert {name: dict(each.configs) for name, each in found.brokers.items() if each.configs} == {
        "": {"log.retention.ms": "172800000", **own},
        str(secured.node_id): {"log.cleaner.threads": "2"},
    }


def test_impossible_changes_are_reported(secured: Broker) -> None:
    declared = ClusterState(
        topics={
            "refused": TopicState(1, 1, {"retention.ms": "soon"}),
            "replicated": TopicState(1, BROKERS_COUNT + 1),
            "good": TopicState(1),
        }
    )

    async def work() -> dict[str, Level]:
        async with ClusterClient(secured.bootstrap) as cluster:
            plan = await make_plan(Admin(cluster), PlanRequest(declared, SECRETS), SystemClock())
            return {str(each.name): each.level for each in plan.changes}

    assert asyncio.run(work()) == {
        "good": Level.NOTE,
        "refused": Level.IMPOSSIBLE,
        "replicated": Level.IMPOSSIBLE,
    }


@MANY
@given(states(), st.integers(1, 8), st.booleans())
def test_any_state_is_reached_when_an_interrupted_apply_is_repeated(
    secured: Broker, declared: ClusterState, at: int, is_delivered: bool
) -> None:
    async def work() -> None:
        bootstrap = secured.bootstrap
        async with (
            ClusterClient(bootstrap) as cluster,
            LostConnection(bootstrap, at, is_delivered=is_delivered) as cut,
        ):
            admin = Admin(cluster)
            request = await grown(admin, declared)
            await applied(Admin(cut), request)
            _, results = await applied(admin, request)
            assert [each for each in results if each.status is not ChangeStatus.DONE] == []
            assert (await make_plan(admin, request, SystemClock())).changes == []

    asyncio.run(work())
