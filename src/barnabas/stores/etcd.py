"""The metadata store of a cluster: etcd 3.4 or newer, through its JSON gateway. See docs/design/etcd.md."""

import asyncio
import json
import sys
from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any

from barnabas.base.store_member import StoreMember
from barnabas.metadata.store import (
    NEVER,
    Commit,
    CommitTooLarge,
    Conflict,
    HistoryLost,
    Item,
    OutcomeUnknown,
    Prefix,
    StoreChange,
    StoreError,
    WentBack,
)
from barnabas.stores.etcd_gateway import Gateway, Refused, decode_answer
from barnabas.stores.etcd_http import EtcdEndpoint, HttpConnection, NoAnswer, NotSent
from barnabas.stores.etcd_keys import (
    Keys,
    Revisions,
    compare_not_before,
    compare_range,
    compare_revision,
    decode_key,
    decode_value,
    delete,
    delete_range,
    encode,
    get,
    got,
    pairs_of,
    put,
    revision_of,
)
from barnabas.stores.etcd_members import describe_members
from barnabas.stores.etcd_sessions import EtcdSessions
from barnabas.telemetry.logs import get_logger

#: Number of keys in one answer while the store is loaded.
PAGE_COUNT = 1000

#: Operations in a transaction: the limits to ask for, and etcd's default.
OPERATIONS_COUNTS_WANTED = (4_000, 1_000)
OPERATIONS_COUNT_DEFAULT = 128

#: How often loading begins again because etcd has compacted the revision that was read.
LOADS_COUNT_MAX = 5

#: How long a watch may be silent before its member is asked whether it still belongs to the majority.
SILENCE_S = 1.0

#: Pause before a watch is opened again.
REOPEN_PAUSE_S = 0.2

#: Pause after a conflict with something that the watch has not shown: the end of a session.
CONFLICT_PAUSE_S = 0.005

#: Part of the error of a transaction that exceeds --max-txn-ops.
_TOO_MANY_OPERATIONS = "too many operations"
#: Part of the error of a change when etcd is larger than --quota-backend-bytes.
_NO_SPACE = "database space exceeded"

_log = get_logger("barnabas.stores")


class EtcdStore:
    """Items under a prefix of etcd; etcd may be shared with others."""

    kind = "etcd"
    is_shared = True

    def __init__(self, gateway: Gateway, prefix: str, session_timeout_ms: int) -> None:
        self._gateway = gateway
        self._keys = Keys(prefix)
        self._sessions = EtcdSessions(gateway, self._keys, session_timeout_ms)
        self._revisions: Revisions | None = None
        self._shown_revision = NEVER  #: the newest commit that a watch has yielded
        #: the newest commit that wrote `last`, as far as this process knows; etcd has it unless a backup is restored
        self._last_revision = NEVER
        self._has_checked_limit = False
        self.changes_max = OPERATIONS_COUNT_DEFAULT - 1  #: one operation puts the id of the commit
        self._refused_count = sys.maxsize  #: fewest operations that etcd has refused as too many
        self.reopened_watches_count = 0

    async def members(self) -> list[StoreMember]:
        """Return the member behind each endpoint; see `metadata.store.Store`."""
        return await describe_members(self._gateway)

    async def load(self) -> tuple[int, list[Item]]:
        """Return the store's revision and all items; see `metadata.store.Store`."""
        revisions = await self._find_revisions()
        await self._check_limit()
        for _ in range(LOADS_COUNT_MAX):
            try:
                return await self._load(revisions)
            except Refused as refused:
                if not refused.is_compacted:
                    raise _store_error(refused) from refused
        raise StoreError("etcd compacts its history faster than the metadata can be loaded")

    async def latest_revision(self) -> int:
        """Return the revision of the last commit; see `metadata.store.Store`."""
        revisions, known_revision = await self._find_revisions(), self._last_revision
        try:
            response = await self._gateway.call("/v3/kv/range", {"key": encode(self._keys.last)})
        except Refused as refused:
            raise _store_error(refused) from refused
        return self._read_last(pairs_of(response), revisions, known_revision)

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        """Write `changes` if every key in `reads` still has that revision; see `metadata.store.Store`."""
        revisions = await self._find_revisions()
        writes = dict(changes)  # etcd refuses a key that is written twice
        operations_count = max(len(reads), len(writes)) + 1
        if operations_count >= self._refused_count:
            raise _too_many_operations(operations_count)  # without sending all of it
        known_revision = self._last_revision
        transaction: dict[str, Any] = {
            "compare": [
                *self._not_gone_back(revisions),
                *(self._condition(key, revisions.of_etcd(seen)) for key, seen in reads.items()),
            ],
            "success": [
                *(self._operation(key, value) for key, value in writes.items()),
                put(self._keys.last, commit_id),
            ],
            "failure": [get(self._keys.last)],
        }
        try:
            response = await self._gateway.call("/v3/kv/txn", transaction, is_repeatable=False)
        except Refused as refused:
            if _TOO_MANY_OPERATIONS in refused.message:
                self._refused_count = operations_count
                raise _too_many_operations(operations_count) from refused
            if _NO_SPACE in refused.message:
                return await self._committed_without_space(refused, commit_id, known_revision)
            raise _store_error(refused, transaction) from refused
        if response.get("succeeded"):
            revision = revisions.of_store(revision_of(response))
            self._last_revision = max(self._last_revision, revision)
            return revision
        last = got(response)
        revision = self._read_last([] if last is None else [last], revisions, known_revision)
        if revision <= self._shown_revision:
            await asyncio.sleep(CONFLICT_PAUSE_S)
        raise Conflict(revision)

    async def _committed_without_space(self, refused: Refused, commit_id: str, known_revision: int) -> int:
        """Return the revision of a commit that etcd has carried out although it says that it has no space.

        etcd compares its size with its quota when a transaction arrives, and again while it carries the transaction
        out, when it is too late to refuse it.

        :param known_revision: The newest commit that was known when this one was sent.
        :raises StoreError: If it was not carried out.
        :raises OutcomeUnknown: If that is not known: etcd does not answer, or others have committed meanwhile.
        """
        revisions = await self._find_revisions()
        try:
            response = await self._gateway.call("/v3/kv/range", {"key": encode(self._keys.last)})
        except (Refused, StoreError) as error:
            raise OutcomeUnknown(f"{refused.message}, then {error}") from error
        pairs = pairs_of(response)
        revision = self._read_last(pairs, revisions, known_revision)
        if commit_id and any(decode_value(pair).decode() == commit_id for pair in pairs):
            return revision
        if revision > known_revision:
            raise OutcomeUnknown(refused.message)
        raise _store_error(refused)

    def _read_last(
        self, pairs: Sequence[Mapping[str, Any]], revisions: Revisions, known_revision: int
    ) -> int:
        """Return the revision of the newest commit, which wrote `last`; NEVER before the first commit.

        etcd's own revision is not used: writes of others raise it, and so does `--bump-revision`.

        :param known_revision: The newest commit that was known when `last` was requested.
        :raises WentBack: If etcd no longer has that commit.
        """
        revision = max((revisions.of_store(int(pair["mod_revision"])) for pair in pairs), default=NEVER)
        if revision < known_revision:
            raise WentBack("etcd", known_revision, revision)
        self._last_revision = max(self._last_revision, revision)
        return revision

    def _not_gone_back(self, revisions: Revisions) -> list[dict[str, Any]]:
        """Return the condition that etcd has the newest commit that this process knows of."""
        if self._last_revision == NEVER:
            return []
        return [compare_not_before(self._keys.last, revisions.of_etcd(self._last_revision))]

    def _condition(self, key: str, etcd_revision: int) -> dict[str, Any]:
        first = self._keys.item(key)
        if isinstance(key, Prefix):
            return compare_range(first, self._keys.item(key.end), etcd_revision)
        return compare_revision(first, etcd_revision)

    def _operation(self, key: str, value: bytes | None) -> dict[str, Any]:
        first = self._keys.item(key)
        if value is not None:
            return put(first, value)
        return delete_range(first, self._keys.item(key.end)) if isinstance(key, Prefix) else delete(first)

    async def watch(self, revision: int) -> AsyncGenerator[Commit]:
        """Yield every commit after `revision` in order; see `metadata.store.Store`."""
        revisions = await self._find_revisions()
        while True:
            endpoint = self._gateway.endpoint
            try:
                connection = await self._open_watch(endpoint, revisions.of_etcd(revision + 1))
                with closing(connection):
                    await self._check(endpoint, revisions)
                    async with aclosing(self._follow(connection, endpoint, revisions, revision)) as commits:
                        async for commit in commits:
                            revision = commit.revision
                            self._shown_revision = max(self._shown_revision, revision)
                            yield commit
            except (NotSent, NoAnswer, Refused) as error:
                _log.warning("the watch of etcd ended", endpoint=str(endpoint), why=str(error))
            self.reopened_watches_count += 1
            self._gateway.drop_token()
            self._gateway.leave(endpoint)
            await asyncio.sleep(REOPEN_PAUSE_S)

    async def open_session(self, key: str, value: bytes) -> int:
        """Write a key with a lease; see `metadata.store.Store`. An earlier process may have left the key: wait."""
        revisions = await self._find_revisions()
        conditions = self._not_gone_back(revisions)
        return revisions.of_store(await self._sessions.open(key, value, conditions))

    async def close_session(self, key: str) -> None:
        """Remove the key of a session that this process has opened."""
        await self.commit({}, (StoreChange(key, None),))
        await self._sessions.revoke(key)

    async def close(self) -> None:
        """Close the connections. Open sessions end as if the process had ended."""
        await self._sessions.close()
        self._gateway.close()

    def statistics(self) -> dict[str, int]:
        return {
            "requests_count": self._gateway.requests_count,
            "failovers_count": self._gateway.failovers_count,
            "reopened_watches_count": self.reopened_watches_count,
            "lost_leases_count": self._sessions.lost_leases_count,
        }

    async def _find_revisions(self) -> Revisions:
        """Return how to translate revisions; the first process that asks writes the base."""
        if self._revisions is None:
            ask = {
                "compare": [compare_revision(self._keys.base, 0)],
                "success": [put(self._keys.base, "0"), get(self._keys.base)],
                "failure": [get(self._keys.base)],
            }
            try:
                response = await self._gateway.call("/v3/kv/txn", ask)
            except Refused as refused:
                raise _store_error(refused) from refused
            base = got(response, at=1 if response.get("succeeded") else 0)
            assert base is not None
            self._revisions = Revisions(base)
        return self._revisions

    async def _check_limit(self) -> None:
        """Find out, once, how many operations a transaction may have; warn if they are few."""
        if self._has_checked_limit:
            return
        for operations_count in OPERATIONS_COUNTS_WANTED:
            transaction = {"compare": [compare_revision(self._keys.base, 0)] * operations_count}
            try:
                await self._gateway.call("/v3/kv/txn", transaction)
            except Refused as refused:
                why = refused.message
                if _TOO_MANY_OPERATIONS in why:
                    self._refused_count = operations_count
            else:
                self.changes_max = operations_count - 1
                self._has_checked_limit = True
                return
        self._has_checked_limit = True
        _log.warning(
            "etcd allows small transactions only: large requests take several, and a few fail",
            why=why,
            start_etcd_with="--max-txn-ops=10000 --max-request-bytes=16777216",
        )

    async def _load(self, revisions: Revisions) -> tuple[int, list[Item]]:
        """Read all pages at the revision of the first."""
        known_revision = self._last_revision
        page = await self._gateway.call("/v3/kv/range", {**self._keys.range, "limit": str(PAGE_COUNT)})
        etcd_revision = revision_of(page)
        pairs = pairs_of(page)
        while page.get("more"):
            rest = {
                "key": encode(_after(pairs[-1])),
                "range_end": encode(self._keys.end),
                "limit": str(PAGE_COUNT),
                "revision": str(etcd_revision),
            }
            page = await self._gateway.call("/v3/kv/range", rest)
            pairs += pairs_of(page)
        if not pairs or not revisions.is_base(self._keys, pairs[0]):
            raise StoreError(
                f"etcd has lost the store: {self._keys.base} is no longer what it was; restore a backup"
            )
        last = [pair for pair in pairs if decode_key(pair) == self._keys.last]
        self._read_last(last, revisions, known_revision)
        items = (revisions.item(self._keys, pair) for pair in pairs)
        return revisions.of_store(etcd_revision), [item for item in items if item is not None]

    async def _open_watch(self, endpoint: EtcdEndpoint, etcd_revision: int) -> HttpConnection:
        create = {**self._keys.range, "start_revision": str(etcd_revision), "fragment": True}
        return await self._gateway.open_stream(endpoint, "/v3/watch", {"create_request": create})

    async def _follow(
        self, connection: HttpConnection, endpoint: EtcdEndpoint, revisions: Revisions, revision: int
    ) -> AsyncGenerator[Commit]:
        """Yield the commits that a connection shows.

        :raises HistoryLost: If etcd has compacted the next one.
        :raises NoAnswer: If the connection or its member fails, or if nothing comes although etcd has a later commit.
        :raises WentBack: If etcd has an older state.
        """
        events: list[Mapping[str, Any]] = []
        awaited_count: int | None = None  #: bytes received when etcd had a commit that had not been shown
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    line = await connection.next_line()
            except TimeoutError:
                if awaited_count == connection.received_count:
                    raise NoAnswer(f"the watch shows nothing after revision {revision}") from None
                is_behind = await self._check(endpoint, revisions) > revision
                awaited_count = connection.received_count if is_behind else None
                continue
            response = decode_answer(0, line)
            if response.get("canceled"):
                _raise_cancellation(response)
            events += response.get("events", ())
            if response.get("fragment"):
                continue  # a transaction may continue in the next fragment
            self._last_revision = max(self._last_revision, revisions.last_written(self._keys, events))
            for commit in revisions.commits(self._keys, events):
                revision = commit.revision
                yield commit
            events = []

    async def _check(self, endpoint: EtcdEndpoint, revisions: Revisions) -> int:
        """Return the revision of the newest commit, which a member knows only with a majority.

        :raises NoAnswer: If it does not answer, as when it is stopped or cut off.
        :raises WentBack: If etcd has an older state.
        """
        known_revision = self._last_revision
        response = await self._gateway.call_at(endpoint, "/v3/kv/range", {"key": encode(self._keys.last)})
        return self._read_last(pairs_of(response), revisions, known_revision)


def _after(pair: Mapping[str, Any]) -> bytes:
    """Return the smallest key after a key."""
    return b64decode(pair["key"]) + b"\0"


def _raise_cancellation(response: Mapping[str, Any]) -> None:
    compacted_revision = int(response.get("compact_revision", 0))
    if compacted_revision:
        raise HistoryLost(f"etcd has compacted its history up to its revision {compacted_revision}")
    raise NoAnswer(str(response.get("cancel_reason") or "etcd has cancelled the watch"))


def _too_many_operations(count: int) -> CommitTooLarge:
    return CommitTooLarge(
        f"a change of {count} keys is larger than etcd allows; start etcd with a larger --max-txn-ops"
    )


def _store_error(refused: Refused, transaction: Mapping[str, Any] | None = None) -> StoreError:
    """Return the error with what the operator can do."""
    text = refused.message
    if transaction is not None and ("too large" in text or "larger than max" in text):
        size = len(json.dumps(transaction)) * 3 // 4
        return CommitTooLarge(
            f"a change of about {size} bytes is larger than etcd allows; start etcd with a larger "
            "--max-request-bytes"
        )
    if _NO_SPACE in text:
        return StoreError(
            "etcd has no space left (alarm NOSPACE): compact and defragment it, disarm the alarm, and start it "
            "with --auto-compaction-retention=1h or a larger --quota-backend-bytes"
        )
    if "permission denied" in text or "user name is empty" in text:
        return StoreError(
            f"{text}: the user in barnabas.store.user must be allowed to read and write the prefix"
        )
    return StoreError(f"etcd refuses the request: {text}")
