"""Expiry of state in the store."""

from pathlib import Path

import pytest

from barnabas.log.trash import trash
from barnabas.metadata.audit.history import history_start
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.delegation_tokens import Lifetimes, decide_create, new_token, token_key
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_undelete
from barnabas.server.background.expiration import Expiration
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

RETENTION_MS = 1000


def expiring(running: RunningNode) -> Expiration:
    return Expiration(
        running.broker.dynamic_config, running.clock, running.broker.metadata, running.broker.replicas.trash
    )


async def change_twice(running: RunningNode) -> None:
    for value in ("1", "2"):
        change = TOPIC_CONFIGS.put("orders", {"retention.ms": value})
        await running.broker.metadata.write(lambda image, change=change: Decision(None, (change,)))


@pytest.mark.parametrize(("retention_ms", "kept_count"), [(RETENTION_MS, 0), (-1, 1)])
def test_historical_values_expire_with_the_audits_retention(
    tmp_path: Path, retention_ms: int, kept_count: int
) -> None:
    @on_loop
    async def scenario() -> None:
        settings = {"barnabas_audit_retention_ms": str(retention_ms)}
        async with running_node(tmp_path, audited=True, **settings) as running:
            await change_twice(running)
            running.clock.advance(RETENTION_MS)
            await expiring(running).expire_history()
            assert len(running.broker.image.former_values) == 1
            running.clock.advance(1)
            await expiring(running).expire_history()
            assert len(running.broker.image.former_values) == kept_count

    scenario()


@on_loop
async def test_without_a_history_nothing_expires(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        await change_twice(running)
        before = running.store.revision
        await expiring(running).expire_history()
        assert running.store.revision == before
        assert history_start(running.broker.image) is None


@on_loop
async def test_a_deleted_topic_expires_from_the_trash(tmp_path: Path) -> None:
    async with running_node(tmp_path, barnabas_trash_retention_ms="1000") as running:
        await running.create(new_topic("orders"))
        await running.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1000))
        running.clock.advance(1000)
        await expiring(running).empty_trash()
        assert len(running.broker.image.trashed_topics) == 1
        running.clock.advance(1)
        await expiring(running).empty_trash()
        assert not running.broker.image.trashed_topics
        assert not running.broker.replicas.trash.sizes_bytes()


@on_loop
async def test_many_topics_expire_in_commits_that_the_store_allows(tmp_path: Path) -> None:
    async with running_node(tmp_path, barnabas_trash_retention_ms="1000") as running:
        for name in ("a", "b", "c"):
            await running.create(new_topic(name))
            await running.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000))
        running.clock.advance(1001)
        running.store.changes_max = 2
        await expiring(running).empty_trash()
        assert not running.broker.image.trashed_topics


@on_loop
async def test_much_history_expires_in_commits_that_the_store_allows(tmp_path: Path) -> None:
    settings = {"barnabas_audit_retention_ms": str(RETENTION_MS)}
    async with running_node(tmp_path, audited=True, **settings) as running:
        for _ in range(3):
            await change_twice(running)
        assert len(running.broker.image.former_values) == 5
        running.clock.advance(RETENTION_MS + 1)
        running.store.changes_max = 2
        await expiring(running).expire_history()
        assert not running.broker.image.former_values


@on_loop
async def test_a_broker_without_audit_removes_much_history_in_commits_that_the_store_allows(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, audited=True) as running:
        for _ in range(3):
            await change_twice(running)
        store = running.store
    store.changes_max = 2
    async with running_node(tmp_path, store) as running:
        assert not running.broker.image.former_values


@on_loop
async def test_many_delegation_tokens_expire_in_commits_that_the_store_allows(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        for number in range(3):
            token = new_token(f"{number}", "User:alice", "User:alice", (), 0, Lifetimes(1, 1), {})
            key = token_key(token.token_id.encode())
            await running.broker.metadata.write(
                lambda image, key=key, token=token: decide_create(image.delegation_tokens, key, token)
            )
        running.store.changes_max = 1
        await expiring(running).remove_delegation_tokens()
        assert not running.broker.image.delegation_tokens


async def delete(running: RunningNode, *names: str) -> None:
    for name in names:
        await running.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000))


def names_in_trash(running: RunningNode) -> list[str]:
    return sorted(each.name for each in running.broker.image.trashed_topics.values())


@on_loop
async def test_beyond_its_limit_the_trash_expires_oldest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Path] = []

    def hundred(path: Path) -> int:
        measured.append(path)
        return 100

    monkeypatch.setattr(trash, "_size_bytes", hundred)
    async with running_node(tmp_path, barnabas_trash_retention_bytes="200") as running:
        keeper = expiring(running)
        for name in ("a", "b", "c"):
            await running.create(new_topic(name))
        await delete(running, "b", "a")
        await keeper.empty_trash()
        await keeper.empty_trash()
        assert names_in_trash(running) == ["a", "b"]
        assert len(measured) == 2, "what is known is not measured again"
        await delete(running, "c")
        await keeper.empty_trash()
        assert names_in_trash(running) == ["a", "c"]
        assert len(measured) == 3


@on_loop
async def test_a_topic_that_was_undeleted_meanwhile_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes_bytes = [100, 300]
    monkeypatch.setattr(trash, "_size_bytes", lambda path: sizes_bytes.pop(0))
    async with running_node(tmp_path, barnabas_trash_retention_bytes="200") as running:
        keeper = expiring(running)
        await running.create(new_topic("a"))
        await delete(running, "a")
        await keeper.empty_trash()
        await running.broker.metadata.write(lambda image: decide_undelete(image, TrashedTopicRequest("a")))
        await delete(running, "a")
        await keeper.empty_trash()
        assert (names_in_trash(running), sizes_bytes) == ([], [])
