"""The contract of any store for cluster state: each store's tests inherit this and define how to open one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from barnabas.metadata.store import NEVER, Commit, Conflict, Item, Prefix, Store, StoreChange
from support.loop import on_loop


async def take(commits: AsyncIterator[Commit], count: int) -> list[Commit]:
    return [await asyncio.wait_for(anext(commits), 10) for _ in range(count)]


class StoreContract:
    """Inherit, and define `opened`; opening the same directory again must return the committed state."""

    def opened(self, directory: Path) -> AbstractAsyncContextManager[Store]:
        raise NotImplementedError

    @on_loop
    async def test_a_new_store_is_empty_at_revision_zero(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            assert await store.load() == (0, [])

    @on_loop
    async def test_committed_changes_are_loaded_with_their_revision(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.load()
            assert await store.commit({}, (StoreChange("b", b"1"), StoreChange("a", b"\0\xff"))) == 1
            assert await store.commit({}, (StoreChange("b", b"2"),)) == 2
            assert await store.load() == (2, [Item("a", b"\0\xff", 1), Item("b", b"2", 2)])

    @on_loop
    async def test_a_removed_key_is_gone_and_can_be_put_again(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.commit({}, (StoreChange("a", b"1"), StoreChange("b", b"1")))
            await store.commit({}, (StoreChange("a", None), StoreChange("never", None)))
            assert (await store.load())[1] == [Item("b", b"1", 1)]
            await store.commit({"a": NEVER}, (StoreChange("a", b"3"),))
            assert (await store.load())[1] == [Item("a", b"3", 3), Item("b", b"1", 1)]

    @on_loop
    async def test_the_last_change_of_a_key_within_a_commit_applies(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.commit({}, (StoreChange("a", b"1"), StoreChange("a", b"2")))
            assert (await store.load())[1] == [Item("a", b"2", 1)]

    @pytest.mark.parametrize(
        ("reads", "conflicts"),
        [
            ({}, False),
            ({"a": 1}, False),
            ({"a": 1, "b": 2, "none": NEVER}, False),
            ({"a": NEVER}, True),
            ({"a": 2}, True),
            ({"b": 1}, True),
            ({"none": 1}, True),
            ({"removed": 1}, True),
            ({"removed": NEVER}, False),
            ({"a": 1, "b": 1}, True),
        ],
    )
    def test_a_commit_succeeds_only_if_its_reads_are_unchanged(
        self, tmp_path: Path, reads: dict[str, int], conflicts: bool
    ) -> None:
        @on_loop
        async def scenario() -> None:
            async with self.opened(tmp_path) as store:
                await store.commit({}, (StoreChange("a", b"1"), StoreChange("removed", b"1")))
                await store.commit({}, (StoreChange("b", b"1"), StoreChange("removed", None)))
                if not conflicts:
                    assert await store.commit(reads, (StoreChange("c", b"3"),)) == 3
                    return
                with pytest.raises(Conflict) as raised:
                    await store.commit(reads, (StoreChange("c", b"3"), StoreChange("a", None)))
                assert raised.value.revision == 2
                assert await store.load() == (2, [Item("a", b"1", 1), Item("b", b"1", 2)])

        scenario()

    @on_loop
    async def test_all_keys_with_a_prefix_can_be_removed_and_the_watch_shows_each(
        self, tmp_path: Path
    ) -> None:
        keys = ("p", "p/", "p/1", "p/2/3", "p0", "q")
        async with self.opened(tmp_path) as store:
            await store.commit({}, tuple(StoreChange(key, b"1") for key in keys))
            commits = store.watch(1)
            assert await store.commit({}, (StoreChange(Prefix("p/"), None), StoreChange("q", b"2"))) == 2
            assert await store.load() == (2, [Item("p", b"1", 1), Item("p0", b"1", 1), Item("q", b"2", 2)])
            [commit] = await take(commits, 1)
            removed = (StoreChange(key, None) for key in ("p/", "p/1", "p/2/3"))
            assert sorted(commit.changes) == sorted([*removed, StoreChange("q", b"2")])
            await store.commit({}, (StoreChange(Prefix("p/"), None), StoreChange("q", b"3")))
            assert [commit.changes for commit in await take(commits, 1)] == [(StoreChange("q", b"3"),)]
            await commits.aclose()  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        ("prefix", "revision", "conflicts"),
        [("p/", 3, False), ("p/", 2, False), ("p/", 1, True), ("p/1", 1, False), ("q/", NEVER, False)],
    )
    def test_a_commit_conflicts_if_a_key_with_a_prefix_was_written_since(
        self, tmp_path: Path, prefix: str, revision: int, conflicts: bool
    ) -> None:
        @on_loop
        async def scenario() -> None:
            async with self.opened(tmp_path) as store:
                await store.commit({}, (StoreChange("p/1", b"1"),))
                await store.commit({}, (StoreChange("p/2", b"1"),))
                await store.commit({}, (StoreChange("p0", b"1"),))
                reads = {Prefix(prefix): revision}
                if not conflicts:
                    assert await store.commit(reads, (StoreChange("c", b"1"),)) == 4
                    return
                with pytest.raises(Conflict) as raised:
                    await store.commit(reads, (StoreChange("c", b"1"),))
                assert raised.value.revision == 3

        scenario()

    @on_loop
    async def test_a_store_continues_after_a_conflict(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            with pytest.raises(Conflict):
                await store.commit({"a": 5}, (StoreChange("a", b"1"),))
            assert await store.commit({"a": NEVER}, (StoreChange("a", b"1"),)) == 1

    @on_loop
    async def test_one_of_many_concurrent_commits_on_a_key_wins_each_round(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:

            async def count_up() -> None:
                while True:
                    _, items = await store.load()
                    seen, number = (items[0].revision, int(items[0].value)) if items else (NEVER, 0)
                    try:
                        await store.commit({"n": seen}, (StoreChange("n", b"%d" % (number + 1)),))
                    except Conflict:
                        continue
                    return

            await asyncio.gather(*(count_up() for _ in range(20)))
            assert await store.load() == (20, [Item("n", b"20", 20)])

    @on_loop
    async def test_a_watch_yields_every_later_commit_in_order(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.commit({}, (StoreChange("before", b"x"),))
            commits = store.watch(1)
            count = 50
            revisions = await asyncio.gather(
                *(
                    store.commit({}, (StoreChange(f"k{at}", b"v"), StoreChange("gone", None)))
                    for at in range(count)
                )
            )
            assert sorted(revisions) == list(range(2, count + 2))
            seen = await take(commits, count)
            assert [commit.revision for commit in seen] == list(range(2, count + 2))
            by_revision = {revision: f"k{at}" for at, revision in enumerate(revisions)}
            for commit in seen:
                put, *removed = commit.changes
                assert put == StoreChange(by_revision[commit.revision], b"v")
                assert removed in ([], [StoreChange("gone", None)])
            await commits.aclose()  # type: ignore[attr-defined]

    @on_loop
    async def test_every_watcher_sees_exactly_the_successful_commits(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            one, two = store.watch(0), store.watch(0)
            await store.commit({}, (StoreChange("a", b"1"),))
            with pytest.raises(Conflict):
                await store.commit({"a": NEVER}, (StoreChange("a", b"2"),))
            await store.commit({}, (StoreChange("a", b"3"),))
            expected = [Commit(1, (StoreChange("a", b"1"),)), Commit(2, (StoreChange("a", b"3"),))]
            assert await take(one, 2) == expected
            assert await take(two, 2) == expected
            await one.aclose()  # type: ignore[attr-defined]
            await two.aclose()  # type: ignore[attr-defined]

    @on_loop
    async def test_a_watch_omits_loaded_revisions(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            commits = store.watch(2)
            for at in range(3):
                await store.commit({}, (StoreChange("a", b"%d" % at),))
            assert [commit.revision for commit in await take(commits, 1)] == [3]
            await commits.aclose()  # type: ignore[attr-defined]

    @on_loop
    async def test_a_cancelled_commit_is_atomic(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.load()
            commits = store.watch(0)
            asking = asyncio.create_task(store.commit({}, (StoreChange("a", b"1"), StoreChange("b", b"1"))))
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            last = await store.commit({}, (StoreChange("c", b"1"),))
            revision, items = await store.load()
            assert revision == last
            assert [item.key for item in items] in (["c"], ["a", "b", "c"])
            seen = await take(commits, last)
            assert {change.key for commit in seen for change in commit.changes} == {
                item.key for item in items
            }
            await commits.aclose()  # type: ignore[attr-defined]

    @on_loop
    async def test_the_latest_revision_is_that_of_the_last_commit(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            assert await store.latest_revision() == NEVER
            for revision in (1, 2):
                await store.commit({}, (StoreChange("a", b"%d" % revision),))
                assert await store.latest_revision() == revision
            with pytest.raises(Conflict):
                await store.commit({"a": 1}, (StoreChange("a", None),))
            assert await store.latest_revision() == 2

    @on_loop
    async def test_commits_survive_reopening_the_store(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for at in range(10):
                await store.commit({}, (StoreChange(f"k{at % 3}", b"%d" % at), StoreChange("k1", None)))
            expected = await store.load()
        async with self.opened(tmp_path) as store:
            assert await store.load() == expected
            assert await store.commit({}, (StoreChange("next", b""),)) == 11

    @on_loop
    async def test_a_session_is_a_key_until_it_is_closed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            commits = store.watch(0)
            assert await store.open_session("sessions/1", b"one") == 1
            assert await store.load() == (1, [Item("sessions/1", b"one", 1)])
            await store.close_session("sessions/1")
            assert await store.load() == (2, [])
            assert await take(commits, 2) == [
                Commit(1, (StoreChange("sessions/1", b"one"),)),
                Commit(2, (StoreChange("sessions/1", None),)),
            ]
            await commits.aclose()  # type: ignore[attr-defined]

    @on_loop
    async def test_a_session_whose_key_was_removed_is_opened_again(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.open_session("sessions/1", b"one")
            await store.commit({"sessions/1": first}, (StoreChange("sessions/1", None),))
            assert await store.open_session("sessions/1", b"two") == 3
            assert await store.load() == (3, [Item("sessions/1", b"two", 3)])
            await store.close_session("sessions/1")
