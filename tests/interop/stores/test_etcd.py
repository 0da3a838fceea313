"""The contract of metadata stores, and what only etcd does, with one member."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.store import (
    NEVER,
    Commit,
    Conflict,
    HistoryLost,
    Item,
    OutcomeUnknown,
    SessionInUse,
    Store,
    StoreChange,
    StoreError,
)
from barnabas.stores import etcd as etcd_store
from barnabas.stores import etcd_sessions
from barnabas.stores.etcd import PAGE_COUNT, EtcdStore
from barnabas.stores.etcd_gateway import Gateway
from barnabas.stores.etcd_keys import encode
from barnabas.stores.etcd_url import parse_etcd_url
from interop import etcd
from support.loop import on_loop
from unit.stores.store_contract import StoreContract, take

SESSION_TIMEOUT_MS = 2000


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[etcd.Member]]:
    with etcd.running(tmp_path_factory.mktemp("etcd")) as running:
        yield running


def gateway_of(members: list[etcd.Member]) -> Gateway:
    return Gateway(parse_etcd_url(etcd.url(members)).endpoints)


@asynccontextmanager
async def opened(members: list[etcd.Member], prefix: Path | str) -> AsyncIterator[EtcdStore]:
    store = EtcdStore(gateway_of(members), str(prefix).strip("/"), SESSION_TIMEOUT_MS)
    try:
        yield store
    finally:
        await store.close()


async def ask(members: list[etcd.Member], path: str, message: dict[str, Any]) -> dict[str, Any]:
    gateway = gateway_of(members)
    try:
        return await gateway.call(path, message)
    finally:
        gateway.close()


class TestEtcdStore(StoreContract):
    @pytest.fixture(autouse=True)
    def use(self, members: list[etcd.Member]) -> None:
        self.members = members

    @asynccontextmanager
    async def opened(self, directory: Path) -> AsyncIterator[Store]:
        async with opened(self.members, directory) as store:
            yield store


@on_loop
async def test_brokers_see_each_others_commits_and_conflicts(
    members: list[etcd.Member], tmp_path: Path
) -> None:
    async with opened(members, tmp_path) as one, opened(members, tmp_path) as other:
        commits = one.watch(0)
        assert await other.commit({}, (StoreChange("a", b"1"),), "id-1") == 1
        with pytest.raises(Conflict):
            await one.commit({"a": NEVER}, (StoreChange("a", b"2"),))
        assert await take(commits, 1) == [Commit(1, (StoreChange("a", b"1"),), "id-1")]
        await commits.aclose()


@on_loop
async def test_keys_of_others_are_no_items_and_leave_revisions_out(
    members: list[etcd.Member], tmp_path: Path
) -> None:
    async with opened(members, tmp_path) as store:
        await store.commit({}, (StoreChange("a", b"1"),))
        await ask(members, "/v3/kv/put", {"key": encode(f"{tmp_path}0"), "value": encode("x")})
        commits = store.watch(1)
        assert await store.load() == (2, [Item("a", b"1", 1)])
        with pytest.raises(Conflict) as raised:
            await store.commit({"a": NEVER}, (StoreChange("a", b"2"),))
        assert raised.value.revision == 1  # waiting for 2 would never end
        assert await store.commit({"a": 1}, (StoreChange("a", b"2"),)) == 3
        assert await take(commits, 1) == [Commit(3, (StoreChange("a", b"2"),))]
        await commits.aclose()


@on_loop
async def test_a_store_of_many_pages_is_loaded_at_one_revision(
    members: list[etcd.Member], tmp_path: Path
) -> None:
    count = 3 * PAGE_COUNT + 1
    async with opened(members, tmp_path) as store:
        await store.commit({}, tuple(StoreChange(f"k{at}", b"%d" % at) for at in range(count)))

        async def change() -> None:
            for round_number in range(20):
                await store.commit(
                    {}, tuple(StoreChange(f"k{at}", b"r%d" % round_number) for at in (0, count - 1))
                )

        changing = asyncio.create_task(change())
        while not changing.done():
            _, items = await store.load()
            values = {item.key: item.value for item in items}
            assert len(values) == count
            assert values["k0"] == values[f"k{count - 1}"] or values["k0"] == b"0"
        await changing


@on_loop
async def test_a_large_commit_comes_through_the_watch_as_one(
    members: list[etcd.Member], tmp_path: Path
) -> None:
    async with opened(members, tmp_path) as store:
        commits = store.watch(0)
        changes = tuple(StoreChange(f"k{at}", b"x" * 2500) for at in range(4000))  # 10 MB
        assert await store.commit({}, changes, "large") == 1
        assert await take(commits, 1) == [Commit(1, changes, "large")]
        await commits.aclose()
        late = store.watch(0)
        assert await take(late, 1) == [Commit(1, changes, "large")]
        await late.aclose()


@on_loop
async def test_a_watch_before_compacted_history_is_lost(members: list[etcd.Member], tmp_path: Path) -> None:
    async with opened(members, tmp_path) as store:
        for at in range(5):
            await store.commit({}, (StoreChange("a", b"%d" % at),))
        present = await ask(members, "/v3/kv/range", {"key": encode("x")})
        await ask(members, "/v3/kv/compaction", {"revision": present["header"]["revision"], "physical": True})
        lost = store.watch(1)
        with pytest.raises(HistoryLost, match="compacted"):
            await asyncio.wait_for(anext(lost), 10)
        revision, items = await store.load()
        assert (revision, items) == (5, [Item("a", b"4", 5)])
        commits = store.watch(revision)
        await store.commit({"a": 5}, (StoreChange("a", b"new"),))
        assert [commit.revision for commit in await take(commits, 1)] == [6]
        await commits.aclose()


@on_loop
async def test_a_store_that_was_removed_from_etcd_is_not_loaded_as_empty(
    members: list[etcd.Member], tmp_path: Path
) -> None:
    prefix = str(tmp_path).strip("/")
    async with opened(members, tmp_path) as store:
        await store.commit({}, (StoreChange("a", b"1"),))
        await ask(
            members, "/v3/kv/deleterange", {"key": encode(f"{prefix}/"), "range_end": encode(f"{prefix}0")}
        )
        with pytest.raises(StoreError, match="etcd has lost the store"):
            await store.load()
        async with opened(members, tmp_path) as other:
            await other.load()
        with pytest.raises(StoreError, match="etcd has lost the store"):
            await store.load()


@on_loop
async def test_a_watch_ends_if_etcd_goes_back_to_an_older_state(tmp_path: Path) -> None:
    with etcd.running(tmp_path) as [member]:
        async with opened([member], "p") as store:
            for at in range(9):
                await store.commit({}, (StoreChange("a", b"%d" % at),))
            commits = store.watch(0)
            await take(commits, 9)
            member.kill()
            shutil.rmtree(tmp_path / member.name)
            member.start()
            with pytest.raises(StoreError, match=r"etcd went back from revision 9 to -?\d+"):
                await asyncio.wait_for(anext(commits), 20)


@on_loop
async def test_a_watch_ends_if_a_backup_is_restored_although_others_have_raised_etcds_revision(
    tmp_path: Path,
) -> None:
    with etcd.running(tmp_path) as [member]:
        data = tmp_path / member.name
        async with opened([member], "p") as store:
            await store.commit({}, (StoreChange("a", b"1"),))
            member.kill()
            await copy_with_foreign_keys(data, tmp_path / "backup", member.name)
            member.start()
            etcd.wait_until_healthy([member])
            commits = store.watch(0)
            for value in (b"2", b"3"):
                await store.commit({}, (StoreChange("a", value),))
            await take(commits, 3)
            member.kill()
            shutil.rmtree(data)
            shutil.copytree(tmp_path / "backup" / member.name, data)
            member.start()
            with pytest.raises(StoreError, match="etcd went back from revision 3 to 1"):
                await asyncio.wait_for(anext(commits), 20)


async def copy_with_foreign_keys(data: Path, backup: Path, name: str) -> None:
    """Copy the data of a member that is stopped, and write keys of others to the copy."""
    shutil.copytree(data, backup / name)
    with etcd.running(backup) as members:
        for number in range(20):
            await ask(members, "/v3/kv/put", {"key": encode("foreign"), "value": encode(str(number))})


@on_loop
async def test_the_session_of_a_process_that_is_gone_ends(members: list[etcd.Member], tmp_path: Path) -> None:
    async with opened(members, tmp_path) as store, opened(members, tmp_path) as gone:
        await store.load()
        opened_revision = await gone.open_session("sessions/1", b"one")
        commits = store.watch(opened_revision)
        await silence(gone)
        [ended] = await take(commits, 1)
        assert ended.changes == (StoreChange("sessions/1", None),)
        assert await store.load() == (ended.revision, [])
        await commits.aclose()


@on_loop
async def test_a_session_of_a_live_process_lasts_longer_than_its_timeout(
    members: list[etcd.Member], tmp_path: Path
) -> None:
    async with opened(members, tmp_path) as store, opened(members, tmp_path) as gone:
        live = await store.open_session("sessions/1", b"live")
        revision = await gone.open_session("sessions/2", b"gone")
        commits = store.watch(revision)
        await silence(gone)
        await take(commits, 1)
        assert [item.key for item in (await store.load())[1]] == ["sessions/1"]
        assert (await store.load())[1][0].revision == live
        await commits.aclose()


@on_loop
async def test_a_session_that_another_live_process_has_is_refused(
    members: list[etcd.Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_sessions, "EXTENSION_S", 0.0)
    async with opened(members, tmp_path) as one, opened(members, tmp_path) as other:
        await one.open_session("sessions/1", b"one")
        with pytest.raises(SessionInUse, match="sessions/1 is open in another process"):
            await other.open_session("sessions/1", b"other")
        assert (await other.load())[1] == [Item("sessions/1", b"one", 1)]


@on_loop
async def test_a_process_waits_for_the_end_of_the_session_that_an_earlier_one_left(
    members: list[etcd.Member], tmp_path: Path
) -> None:
    async with opened(members, tmp_path) as gone, opened(members, tmp_path) as store:
        await gone.open_session("sessions/1", b"one")
        await silence(gone)
        revision = await store.open_session("sessions/1", b"two")
        assert (await store.load())[1] == [Item("sessions/1", b"two", revision)]


@on_loop
async def test_a_lost_session_is_opened_again(members: list[etcd.Member], tmp_path: Path) -> None:
    async with opened(members, tmp_path) as store:
        revision = await store.open_session("sessions/1", b"one")
        commits = store.watch(revision)
        leases = await ask(members, "/v3/lease/leases", {})
        for lease in leases["leases"]:
            await ask(members, "/v3/lease/revoke", {"ID": lease["ID"]})
        await take(commits, 1)
        again = await store.open_session("sessions/1", b"two")
        assert (await store.load())[1] == [Item("sessions/1", b"two", again)]
        await commits.aclose()


@on_loop
async def test_closing_a_store_ends_its_sessions(members: list[etcd.Member], tmp_path: Path) -> None:
    async with opened(members, tmp_path) as store:
        async with opened(members, tmp_path) as closed:
            await closed.open_session("sessions/1", b"one")
        assert (await store.load())[1] == []


class Log:
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.warnings.append(f"{event} {fields}")


async def silence(store: EtcdStore) -> None:
    """Stop the heartbeats of a store, as the death of its process does."""
    keeping = list(store._sessions._keeping.values())
    for task in keeping:
        task.cancel()
    await asyncio.gather(*keeping, return_exceptions=True)
    store._sessions._leases.clear()


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        (tuple(StoreChange(f"k{at}", b"") for at in range(128)), r"of 129 keys .* --max-txn-ops"),
        ((StoreChange("a", b"x" * 2_000_000),), "--max-request-bytes"),
    ],
)
def test_a_commit_beyond_a_limit_of_etcd_is_refused_with_the_flag_to_raise(
    tmp_path: Path, changes: tuple[StoreChange, ...], flag: str
) -> None:
    @on_loop
    async def scenario() -> None:
        with etcd.running(tmp_path, settings=()) as small:
            async with opened(small, "p") as store:
                with pytest.raises(StoreError, match=flag):
                    await store.commit({}, changes)
                assert await store.commit({}, (StoreChange("a", b"1"),)) == 1

    scenario()


@on_loop
async def test_transactions_are_whole_although_etcd_sends_them_in_fragments(tmp_path: Path) -> None:
    with etcd.running(tmp_path, settings=()) as small:  # fragments of 2 MB
        async with opened(small, "p") as store:
            expected = []
            for number in range(8):
                changes = tuple(StoreChange(f"k{at}", b"%d" % number * 10_000) for at in range(100))
                revision = await store.commit({}, changes, f"id-{number}")
                expected.append(Commit(revision, changes, f"id-{number}"))
            commits = store.watch(0)
            assert await take(commits, 8) == expected
            await commits.aclose()


@on_loop
async def test_an_etcd_with_small_transactions_is_warned_of(
    members: list[etcd.Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    monkeypatch.setattr(etcd_store, "_log", log)
    async with opened(members, tmp_path) as store:
        await store.load()
        assert store.changes_max == 3_999
    assert log.warnings == []
    with etcd.running(tmp_path, settings=()) as small:
        async with opened(small, "p") as store:
            await store.load()
            assert store.changes_max == 127
            changes = tuple(StoreChange(f"k{at}", b"1") for at in range(127))
            assert await store.commit(dict.fromkeys((key for key, _ in changes), NEVER), changes) == 1
    [warning] = log.warnings
    assert "--max-txn-ops=10000" in warning


@on_loop
async def test_an_etcd_without_space_is_a_store_error_that_says_what_to_do(tmp_path: Path) -> None:
    with etcd.running(tmp_path, settings=("--quota-backend-bytes=1048576",)) as small:
        async with opened(small, "p") as store:
            await fill(store, "single", concurrent_count=1)
            await store.load()


@pytest.mark.parametrize("size", [3_000, 10_000, 33_000])
@on_loop
async def test_a_commit_that_etcd_has_no_space_for_is_refused_only_if_it_was_not_carried_out(
    tmp_path: Path, size: int
) -> None:
    with etcd.running(tmp_path, settings=("--quota-backend-bytes=1048576",)) as small:
        async with opened(small, "p") as store:
            outcomes = await fill(store, "k", concurrent_count=16, size=size)
            _, items = await store.load()
    there = {item.key for item in items}
    assert {key for key, error in outcomes.items() if error is None} <= there
    assert not there & {key for key, error in outcomes.items() if isinstance(error, StoreError)}


async def fill(
    store: EtcdStore, name: str, *, concurrent_count: int, size: int = 50_000
) -> dict[str, Exception | None]:
    """Commit keys until etcd has refused one for want of space; return how each commit ended."""
    outcomes: dict[str, Exception | None] = {}

    async def commit(key: str) -> None:
        try:
            await store.commit({}, (StoreChange(key, b"x" * size),), key)
            outcomes[key] = None
        except (StoreError, OutcomeUnknown) as error:
            outcomes[key] = error

    while not any(isinstance(error, StoreError) for error in outcomes.values()):
        first = len(outcomes)
        assert first < 2_000
        await asyncio.gather(*(commit(f"{name}{at}") for at in range(first, first + concurrent_count)))
    assert "NOSPACE" in " ".join(str(error) for error in outcomes.values() if isinstance(error, StoreError))
    return outcomes


@on_loop
async def test_a_store_that_does_not_run_is_an_error_with_the_endpoints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.stores.etcd_gateway.RETRY_TIMEOUT_S", 0.0)
    endpoints = parse_etcd_url("etcd://127.0.0.1:1,localhost:1").endpoints
    store = EtcdStore(Gateway(endpoints), "p", SESSION_TIMEOUT_MS)
    with pytest.raises(
        StoreError, match=r"no endpoint of etcd answers \(http://127.0.0.1:1: .*localhost:1: "
    ):
        await store.load()
    await store.close()
