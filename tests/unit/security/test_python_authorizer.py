import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.metadata.acls import acl_key
from barnabas.policy import Action, AuthorizableRequestContext, Authorizer
from barnabas.policy.policies import Policies, PolicySettings
from barnabas.policy.security_calls import CALLS_COUNT_MAX
from barnabas.security import python_authorizer as module
from barnabas.security.acl_use import AclUseRecord
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.security.python_authorizer import CALLS_OF_PRINCIPAL_MAX, PythonAuthorizer
from barnabas.wire.acls import CLUSTER_NAME, AclBinding, AclOperation, ResourceType
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.acls import ALICE, ROOT, allow
from support.images import new_topic
from support.loop import on_loop
from support.nodes import running_node
from support.policies import policy_module

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
CACHE_MS = 1_000


class Recorded(Authorizer):
    """Allows what is in `decisions` by the resource's name; fails for the topic `broken`."""

    calls: list[tuple[AuthorizableRequestContext, list[Action]]]
    gate: threading.Event
    decisions: dict[str, bool | None]

    def __init__(self) -> None:
        Recorded.calls, Recorded.gate = [], threading.Event()
        Recorded.gate.set()
        Recorded.decisions = {"t": True, "by-acls": None, "__barnabas_audit": True}

    def authorize(
        self, request_context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[bool | None]:
        self.calls.append((request_context, list(actions)))
        self.gate.wait(30)
        if any(action.resource_name == "broken" for action in actions):
            raise OSError
        if any(action.resource_name == "miscounted" for action in actions):
            return []
        return [self.decisions.get(action.resource_name, False) for action in actions]


async def loaded(*acls: AclBinding, cache_ms: int = CACHE_MS) -> tuple[PythonAuthorizer, ManualClock]:
    policies = Policies(PolicySettings(authorizer_class=f"{__name__}:Recorded", time_limit_ms=30_000))
    await policies.load()
    clock = ManualClock()
    table = {acl_key(acl): acl for acl in acls}
    standard = StandardAuthorizer(
        table, [ROOT], allow_if_no_acl=False, clock=clock, use=AclUseRecord.empty(0)
    )
    return PythonAuthorizer(policies, standard, cache_ms, clock), clock


async def ask(authorizer: PythonAuthorizer, *names: str, principal: str = ALICE) -> list[bool]:
    return await authorizer.ask(principal, "host", [(READ, TOPIC, name) for name in names])


@on_loop
async def test_the_class_decides_and_its_decisions_are_used_again_for_a_while() -> None:
    authorizer, clock = await loaded()
    assert authorizer.known(ALICE, "host", READ, TOPIC, "t") is None
    assert await ask(authorizer, "t", "u") == [True, False]
    context = AuthorizableRequestContext(ALICE, "host")
    assert Recorded.calls == [(context, [Action("READ", "TOPIC", "t"), Action("READ", "TOPIC", "u")])]
    clock.advance(CACHE_MS - 1)
    assert authorizer.known(ALICE, "host", READ, TOPIC, "t") is True
    assert authorizer.known(ALICE, "host", READ, TOPIC, "u") is False
    assert authorizer.known(ALICE, "elsewhere", READ, TOPIC, "t") is None
    clock.advance(1)
    assert authorizer.known(ALICE, "host", READ, TOPIC, "t") is None


@on_loop
async def test_without_a_cache_each_request_asks() -> None:
    authorizer, _ = await loaded(cache_ms=0)
    for _ in range(2):
        assert await ask(authorizer, "t") == [True]
        assert authorizer.known(ALICE, "host", READ, TOPIC, "t") is None
    assert len(Recorded.calls) == 2


@on_loop
async def test_requests_that_ask_the_same_at_a_time_share_one_call() -> None:
    authorizer, _ = await loaded()
    Recorded.gate.clear()
    first, second = asyncio.create_task(ask(authorizer, "t")), asyncio.create_task(ask(authorizer, "t", "u"))
    while len(Recorded.calls) < 2:
        await asyncio.sleep(0)
    first.cancel()  # its client has gone
    Recorded.gate.set()
    assert await second == [True, False]
    assert sorted(len(actions) for _, actions in Recorded.calls) == [1, 1]
    assert authorizer.statistics()["pending_count"] == 0


@on_loop
async def test_what_the_class_leaves_open_the_acls_decide() -> None:
    authorizer, _ = await loaded(allow(READ, name="by-acls"))
    assert await ask(authorizer, "by-acls") == [True]
    assert await ask(authorizer, "by-acls", principal="User:bob") == [False]
    assert authorizer.known(ALICE, "host", READ, TOPIC, "by-acls") is True
    assert len(authorizer.used()) == 1
    assert await authorizer.allows_any(ALICE, "host", READ, TOPIC)
    assert not await authorizer.allows_any(ALICE, "host", AclOperation.WRITE, TOPIC)


@on_loop
async def test_only_decisions_by_acls_are_recorded() -> None:
    authorizer, _ = await loaded(allow(READ, name="by-acls"))
    assert await ask(authorizer, "t", "u", "by-acls") == [True, False, True]
    assert authorizer.reported(ALICE, "host", READ, TOPIC, "by-acls") is True
    assert [each.name for each in authorizer.decision_record().decisions] == ["by-acls"]


@on_loop
async def test_super_users_are_allowed_without_a_question() -> None:
    authorizer, _ = await loaded()
    assert authorizer.known(ROOT, "host", READ, TOPIC, "u") is True
    assert await authorizer.allows_any(ROOT, "host", READ, TOPIC)
    assert Recorded.calls == []


@on_loop
async def test_after_a_failure_everything_is_denied_and_other_requests_are_not_affected() -> None:
    authorizer, _ = await loaded()
    assert await ask(authorizer, "t", "broken") == [False, False]
    assert await ask(authorizer, "miscounted") == [False]
    assert authorizer.known(ALICE, "host", READ, TOPIC, "t") is None, "the next request asks again"
    assert await ask(authorizer, "t", principal="User:bob") == [True]
    asked = authorizer._policies.authorizer
    assert asked is not None
    assert (asked.calls_count, asked.failures_count) == (3, 2)


@on_loop
async def test_permissions_on_the_audit_topic_do_not_suffice_to_delete_it() -> None:
    authorizer, clock = await loaded()
    delete = AclOperation.DELETE, TOPIC, "__barnabas_audit"
    assert await authorizer.ask(ALICE, "host", [delete]) == [False]
    assert authorizer.known(ALICE, "host", *delete) is False
    clock.advance(CACHE_MS)
    Recorded.decisions[CLUSTER_NAME] = True
    assert await authorizer.ask(ALICE, "host", [delete]) == [True]
    assert authorizer.known(ALICE, "host", *delete) is True


@on_loop
async def test_the_calls_for_one_principal_leave_threads_for_others() -> None:
    authorizer, _ = await loaded()
    Recorded.gate.clear()
    asking = [asyncio.create_task(ask(authorizer, f"t-{number}")) for number in range(CALLS_COUNT_MAX)]
    while len(Recorded.calls) < CALLS_OF_PRINCIPAL_MAX:
        await asyncio.sleep(0)
    asking.append(asyncio.create_task(ask(authorizer, "t", principal="User:bob")))
    while len(Recorded.calls) < CALLS_OF_PRINCIPAL_MAX + 1:
        await asyncio.sleep(0)
    assert Recorded.calls[-1][0].principal == "User:bob"
    Recorded.gate.set()
    await asyncio.gather(*asking)


@on_loop
async def test_requests_of_a_principal_with_too_many_questions_are_denied_soon() -> None:
    authorizer, _ = await loaded()
    asked = authorizer._policies.authorizer
    assert asked is not None
    Recorded.gate.clear()
    asking = [asyncio.create_task(ask(authorizer, f"t-{number}")) for number in range(CALLS_OF_PRINCIPAL_MAX)]
    while len(Recorded.calls) < CALLS_OF_PRINCIPAL_MAX:
        await asyncio.sleep(0)
    asked.time_limit_ms = 1
    assert await ask(authorizer, "t") == [False]
    assert len(Recorded.calls) == CALLS_OF_PRINCIPAL_MAX
    Recorded.gate.set()
    await asyncio.gather(*asking)


@on_loop
async def test_the_oldest_decision_is_forgotten_if_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "DECISIONS_COUNT_MAX", 2)
    authorizer, _ = await loaded()
    for name in ("t", "u", "v"):
        await ask(authorizer, name)
    known = [authorizer.known(ALICE, "host", READ, TOPIC, name) for name in ("t", "u", "v")]
    assert known == [None, False, False]


@on_loop
async def test_a_decision_holds_for_the_rest_of_a_request(tmp_path: Path) -> None:
    """It may expire while the request waits for another one."""
    authorizer, clock = await loaded()
    Recorded.decisions |= {"a": True, "b": True}
    async with running_node(tmp_path) as running:
        await running.create(new_topic("a"), new_topic("b"))
        running.broker.authorizer = authorizer
        running.connection.principal = ALICE
        of_a, of_b = MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")
        await running.ask(MetadataRequest(topics=[of_a]))
        clock.advance(CACHE_MS - 1)
        Recorded.gate.clear()
        asking = asyncio.create_task(running.ask(MetadataRequest(topics=[of_a, of_b])))
        while Recorded.calls[-1][1][-1].resource_name != "b":
            await asyncio.sleep(0)
        clock.advance(1)
        Recorded.gate.set()
        assert [topic.error_code for topic in (await asking).topics] == [0, 0]


def test_a_reloaded_class_decides_again(tmp_path: Path) -> None:
    text = """
    from barnabas.policy import Authorizer

    class Fixed(Authorizer):
        def authorize(self, request_context, actions):
            return [{decision}] * len(actions)
    """

    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, text.format(decision=True)) as module:
            policies = Policies(PolicySettings(authorizer_class=module.named("Fixed"), time_limit_ms=30_000))
            await policies.load()
            clock = ManualClock()
            standard = StandardAuthorizer(
                {}, [], allow_if_no_acl=False, clock=clock, use=AclUseRecord.empty(0)
            )
            authorizer = PythonAuthorizer(policies, standard, CACHE_MS, clock)
            assert await ask(authorizer, "t") == [True]
            module.write(text.format(decision=False))
            await policies.reload()
            assert authorizer.known(ALICE, "host", READ, TOPIC, "t") is None
            assert await ask(authorizer, "t") == [False]
            await policies.close()
            assert await ask(authorizer, "another") == [False]

    scenario()
