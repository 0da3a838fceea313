"""Three members of etcd, of which the leader is killed or stopped while brokers commit."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.metadata.store import NEVER, Commit, OutcomeUnknown, StoreChange, StoreError
from barnabas.stores.etcd import EtcdStore
from barnabas.stores.etcd_gateway import Gateway
from barnabas.stores.etcd_url import parse_etcd_url
from interop import etcd
from support.loop import on_loop
from support.waiting import reached
from support.watches import follow

SESSION_TIMEOUT_MS = 6000
WRITERS_COUNT = 4


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[etcd.Member]]:
    with etcd.running(tmp_path, 3) as running:
        yield running


@asynccontextmanager
async def opened(members: list[etcd.Member]) -> AsyncIterator[EtcdStore]:
    """:param members: The first one is used first."""
    store = EtcdStore(Gateway(parse_etcd_url(etcd.url(members)).endpoints), "p", SESSION_TIMEOUT_MS)
    try:
        yield store
    finally:
        await store.close()


class Outcomes:
    """What the commits of some writers led to; each commit writes a key of its own."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}  #: key -> revision
        self.unknown: list[str] = []
        self.failed: list[str] = []
        self._is_ending = False

    async def write(self, store: EtcdStore, name: str) -> None:
        number = 0
        while not self._is_ending:
            number += 1
            key = f"{name}-{number}"
            try:
                self.done[key] = await store.commit({key: NEVER}, (StoreChange(key, b"v"),), key)
            except OutcomeUnknown:
                self.unknown.append(key)
            except StoreError:
                self.failed.append(key)

    def end(self) -> None:
        self._is_ending = True


async def commit_during(members: list[etcd.Member], first: etcd.Member, number: signal.Signals) -> None:
    """Send a signal to etcd's leader during commits; `first` is the member that all stores use first."""
    others = [member for member in members if member is not first]
    leader = etcd.leader(members)
    outcomes, seen = Outcomes(), list[Commit]()
    async with opened([first, *others]) as store, opened([first, *others]) as watching:
        await store.load()
        following = asyncio.create_task(follow(watching, seen.append))
        writing = [asyncio.create_task(outcomes.write(store, f"w{at}")) for at in range(WRITERS_COUNT)]
        await reached(lambda: len(outcomes.done) > 50)
        leader.signal(number)
        before = len(outcomes.done)
        await reached(lambda: len(outcomes.done) > before + 100)
        outcomes.end()
        await asyncio.gather(*writing)
        revision, items = await store.load()
        await store.commit({}, (StoreChange("end", b""),), "end")
        await reached(lambda: seen and seen[-1].commit_id == "end")
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    present = {item.key: item.revision for item in items}
    assert {key: present.get(key) for key in outcomes.done} == outcomes.done
    assert not set(outcomes.failed) & set(present)
    assert set(present) <= set(outcomes.done) | set(outcomes.unknown)
    shown = [commit for commit in seen if commit.revision <= revision]
    assert {commit.commit_id: commit.revision for commit in shown} == present
    assert [commit.revision for commit in seen] == sorted({commit.revision for commit in seen})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("uses_leader", [True, False], ids=["of-the-brokers", "of-others"])
def test_each_commit_has_its_outcome_and_the_watch_continues_when_the_leader_is(
    members: list[etcd.Member], number: signal.Signals, uses_leader: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        leader = etcd.leader(members)
        first = leader if uses_leader else next(member for member in members if member is not leader)
        await commit_during(members, first, number)

    scenario()


@on_loop
async def test_a_session_survives_the_death_of_its_member_and_of_the_leader(
    members: list[etcd.Member],
) -> None:
    leader = etcd.leader(members)
    others = [member for member in members if member is not leader]
    async with opened([leader, *others]) as store, opened(others) as other:
        revision = await store.open_session("sessions/1", b"one")
        leader.kill()
        before = store._gateway.requests_count
        await reached(lambda: store._gateway.requests_count > before + 6)  # some keepalives later
        assert [(item.key, item.revision) for item in (await other.load())[1]] == [("sessions/1", revision)]


@on_loop
async def test_without_a_majority_commits_fail_and_work_again_when_it_returns(
    members: list[etcd.Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.stores.etcd_gateway.RETRY_TIMEOUT_S", 0.5)
    async with opened(members) as store:
        await store.load()
        for member in members[:2]:
            member.kill()
        with pytest.raises((OutcomeUnknown, StoreError)):
            await store.commit({}, (StoreChange("a", b"1"),))
        for member in members[:2]:
            member.start()
        etcd.wait_until_healthy(members)
        await store.commit({}, (StoreChange("b", b"2"),))
        assert "b" in {item.key for item in (await store.load())[1]}


@on_loop
async def test_a_watch_moves_from_a_member_that_is_stopped_while_nothing_is_committed(
    members: list[etcd.Member],
) -> None:
    leader = etcd.leader(members)  # not this one: commits would be unanswered
    stopped = next(member for member in members if member is not leader)
    others = [member for member in members if member is not stopped]
    async with opened([stopped, *others]) as watching, opened(others) as store:
        await watching.load()
        seen = list[Commit]()
        following = asyncio.create_task(follow(watching, seen.append))
        await store.commit({}, (StoreChange("a", b"1"),))
        await reached(lambda: len(seen) == 1)
        stopped.signal(signal.SIGSTOP)
        await store.commit({}, (StoreChange("a", b"2"),))
        await reached(lambda: len(seen) == 2)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
