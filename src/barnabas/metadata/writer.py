"""The only way to change metadata: decide, commit by compare-and-set, and wait until the commit is replayed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from barnabas.base.store_member import StoreMember
from barnabas.base.worker import Worker
from barnabas.metadata.audit.auditor import WAITING_COUNT_MAX, Auditor
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.records import NO_POLICY_RESULTS, Actor, PolicyResult, Refusal
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.image_hash import ImageHasher, hash_changes
from barnabas.metadata.latest_revision import LatestRevision
from barnabas.metadata.parts import client_error, write_parts
from barnabas.metadata.store import (
    PARTITIONS_MAX,
    Commit,
    Conflict,
    HistoryLost,
    Item,
    OutcomeUnknown,
    Store,
    StoreError,
    WentBack,
)
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.errors import ErrorCode, KafkaError

ItemT = TypeVar("ItemT")
ResponseT = TypeVar("ResponseT")

#: A larger commit is replayed in another thread: a change takes about 20 us, and so does a kilobyte of a value.
REPLAYED_CHANGES_MAX = 100
REPLAYED_BYTES_MAX = 64 << 10

#: Keys on which the change of a partition depends, besides the brokers and the configs of the cluster.
CHANGES_PER_PARTITION = 3
#: Fewest keys that are reserved for these.
CHANGES_RESERVED = 32

#: How long to look for the outcome of a commit that the store did not confirm, and how often to send it again.
UNKNOWN_OUTCOME_WAIT_S = 10.0
RESEND_S = 0.25

#: After which time to load the metadata again if the store failed.
RELOAD_RETRY_S = 1.0

_UNKNOWN_OUTCOME = (
    f"The metadata store did not confirm the change within {UNKNOWN_OUTCOME_WAIT_S:g} s. It may have been made, or may "
    "still be made: look at the resource before you send the request again."
)

_log = get_logger("barnabas.metadata")


#: Called after each replay with the image before, the image after and the keys that have changed. The next commit
#: and the requests that wait for this one wait for it.
Listener = Callable[[MetadataImage, MetadataImage, ChangedKeys], Awaitable[None]]


class _OutcomeNotFound(Exception):
    """The store did not answer, and the outcome of the commit was not found in time."""


class MetadataWriter:
    """Holds the image of this node, and follows the watch of the store.

    Listeners get a new image before the requests that wait for its revision: after a response to CreateTopics, the
    partitions are open.
    """

    def __init__(
        self, store: Store, auditor: Auditor | None = None, worker: Worker | None = None, writer_id: str = ""
    ) -> None:
        """:param auditor: Writes audit records; None for no audit.
        :param worker: Decides large requests.
        :param writer_id: Unique among the writers of the store, also those of earlier starts.
        """
        self._store = store
        self._latest_revision = LatestRevision(store)
        self._writer_id = writer_id
        self._sent: dict[str, asyncio.Future[int]] = {}  #: commit id -> revision, once the watch has shown it
        self._worker = worker
        self._auditor = auditor
        self._listeners: list[Listener] = []
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._following: asyncio.Task[None] | None = None
        #: writes and waits of requests with a timeout; a write goes on after its timeout
        self._in_progress: set[asyncio.Future[Any]] = set()
        self._failure: KafkaError | None = None  #: why the image cannot change any more
        self.on_failure: Callable[[], None] = lambda: None  #: called when the image cannot change any more
        self.image = MetadataImage()
        self._hasher = ImageHasher(worker)
        self._followed_revision = 0  #: all listeners have seen the image of this revision
        self.conflicts_count = 0
        self.commits_count = 0
        self.unknown_outcomes_count = 0
        self.reloads_count = 0
        self._sent_count = 0

    def listen(self, listener: Listener) -> None:
        """Call `listener` with (before, after, changed) for every later image."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Load the store and follow it."""
        revision, items = await self._store.load()
        commits = self._store.watch(revision)
        self.image = MetadataImage.load(revision, items)
        await self._hasher.load(revision, items)
        self._followed_revision = revision
        self._following = asyncio.create_task(self._follow(commits), name="metadata-watch")

    async def stop(self) -> None:
        """Stop following; the image does not change any more. Writes in progress are abandoned, committed or not."""
        for pending in self._in_progress:
            pending.cancel()
        await asyncio.gather(*self._in_progress, return_exceptions=True)
        await self._latest_revision.stop()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None
        await self._hasher.stop()

    async def write(
        self,
        decide: Callable[[MetadataImage], Decision[ResponseT]],
        timeout_ms: int | None = None,
        actor: Actor | None = None,
        policy_results: Mapping[str, PolicyResult] = NO_POLICY_RESULTS,
        *,
        is_large: bool = False,
    ) -> ResponseT:
        """Commit what `decide` decides, deciding again on a newer image after each conflict.

        Changes of an `actor` are recorded in the audit with the results of policies (`policy_results`, by resource);
        decisions without an actor are the broker's own. Return when the image of this node has reached the commit.

        :param is_large: Run `decide` in a worker thread.
        """
        return await self.within(timeout_ms, self._write(decide, actor, policy_results, is_large=is_large))

    async def write_each(
        self,
        items: Sequence[ItemT],
        decide: Callable[[MetadataImage, Sequence[ItemT]], Decision[list[ResponseT]]],
        failed: Callable[[ItemT, KafkaError], ResponseT],
        timeout_ms: int | None = None,
        actor: Actor | None = None,
        policy_results: Mapping[str, PolicyResult] = NO_POLICY_RESULTS,
        *,
        key: Callable[[ItemT], Hashable] = id,
        is_large: bool = False,
    ) -> list[ResponseT]:
        """Commit what `decide` decides on items that do not depend on each other; return all its responses.

        That is one commit, as with `write`, or several if the store allows only smaller ones; see `write_parts`.
        `decide` then gets a part of the items.
        """

        async def write(part: Sequence[ItemT]) -> list[ResponseT]:
            return await self._write(
                lambda image: decide(image, part), actor, policy_results, is_large=is_large
            )

        return await self.within(timeout_ms, write_parts(items, write, failed, key))

    async def within(self, timeout_ms: int | None, writing: Coroutine[Any, Any, ResponseT]) -> ResponseT:
        """Wait for a write, and what must follow it, for some time; it goes on afterwards.

        :raises KafkaError: REQUEST_TIMED_OUT; UNKNOWN_SERVER_ERROR if the store cannot be written.
        """
        if timeout_ms is None:
            return await _with_client_errors(writing)
        if timeout_ms <= 0:
            writing.close()
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"A timeout of {timeout_ms} ms is not valid: it must be larger than 0.",
            )
        pending_write = self._begin(_with_client_errors(writing))
        await asyncio.wait({pending_write}, timeout=timeout_ms / 1000)
        if not pending_write.done():
            message = f"The change was not committed within {timeout_ms} ms; it may still be applied."
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
        return pending_write.result()

    async def record_events(
        self,
        actor: Actor,
        refusals: Sequence[Refusal],
        warnings: Sequence[Refusal] = (),
        differences: Sequence[Difference] = (),
    ) -> None:
        """Record refused changes, warnings and differences outside the store in the audit.

        Refused changes are limited (`metadata/audit/refusals.py`), and not recorded if too many records wait to be
        published. Warnings and differences are changes, and always recorded.

        :raises KafkaError: UNKNOWN_SERVER_ERROR if the store cannot be written.
        """
        auditor = self._auditor
        if auditor is None:
            return
        can_refuse = len(self.image.audit) < WAITING_COUNT_MAX
        admitted = auditor.admitted(actor, refusals) if can_refuse else []
        is_large = len(admitted) + len(warnings) + len(differences) > REPLAYED_CHANGES_MAX
        recorded_events = await self._compute(
            lambda: auditor.audit_events(actor, admitted, warnings, differences), is_large=is_large
        )
        await self._record(recorded_events)

    async def record_left_out(self) -> None:
        """Record how many refused changes were left out in earlier minutes; to be called regularly.

        :raises KafkaError: UNKNOWN_SERVER_ERROR if the store cannot be written.
        """
        if self._auditor is not None and len(self.image.audit) < WAITING_COUNT_MAX:
            for left_out in self._auditor.audit_left_out():
                await self._record(left_out)

    async def _record(self, recorded_events: Decision[None]) -> None:
        await self.within(None, self._write(lambda image: recorded_events, None, NO_POLICY_RESULTS))

    def _begin(self, work: Coroutine[Any, Any, ResponseT]) -> "asyncio.Future[ResponseT]":
        """Begin what a request waits for with a timeout; `stop` cancels it."""
        pending = asyncio.ensure_future(work)
        self._in_progress.add(pending)
        pending.add_done_callback(self._ended)
        return pending

    def _ended(self, pending: asyncio.Future[Any]) -> None:
        self._in_progress.discard(pending)
        if not pending.cancelled():
            pending.exception()  # retrieved here too, because the request that waited for it may have ended

    async def _write(
        self,
        decide: Callable[[MetadataImage], Decision[ResponseT]],
        actor: Actor | None,
        policy_results: Mapping[str, PolicyResult],
        *,
        is_large: bool = False,
    ) -> ResponseT:
        auditor = self._auditor
        while True:
            image = self.image

            def decide_and_audit(image: MetadataImage = image) -> Decision[ResponseT]:
                decision = decide(image)
                if auditor is None or not decision.changes:
                    return decision
                return auditor.with_audit_record(image, decision, actor, policy_results)

            decision = await self._compute(decide_and_audit, is_large=is_large)
            if not decision.changes:
                return decision.response
            try:
                revision = await self._commit(decision)
            except _OutcomeNotFound:
                if actor is None:
                    continue  # the broker's own decisions are made again on the present image
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, _UNKNOWN_OUTCOME) from None
            except Conflict as conflict:
                self.conflicts_count += 1
                await self.wait_for_revision(conflict.revision)
                continue
            self.commits_count += 1
            await self.wait_for_revision(revision)
            return decision.response

    async def _commit(self, decision: Decision[Any]) -> int:
        """Return the revision of the commit, also if the store does not confirm it.

        :raises _OutcomeNotFound: If the outcome was not found in time. It may still be committed.
        :raises CommitTooLarge: If the store allows only smaller commits.
        """
        self._sent_count += 1
        commit_id = f"{self._writer_id}-{self._sent_count}"
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._sent[commit_id] = committed
        reloads_count = self.reloads_count
        try:
            return await self._store.commit(decision.reads, decision.changes, commit_id)
        except OutcomeUnknown as error:
            self.unknown_outcomes_count += 1
            _log.warning("the metadata store did not answer", why=str(error), commit_id=commit_id)
            return await self._find_outcome(decision, commit_id, committed, reloads_count)
        finally:
            del self._sent[commit_id]

    async def _find_outcome(
        self, decision: Decision[Any], commit_id: str, committed: asyncio.Future[int], reloads_count: int
    ) -> int:
        """Wait until the watch shows a commit, and send it again in the meantime.

        A transaction that changes a key on which it depends is committed once at most, however often it is sent. If
        it conflicts, either it has been committed, and the watch shows that, or another commit came first, and it fails
        whenever it arrives. Others are not sent again: a topic that was created and deleted meanwhile would return.

        :param reloads_count: From before it was first sent.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + UNKNOWN_OUTCOME_WAIT_S
        is_repeatable = decision.is_repeatable
        while loop.time() < end_s:
            await asyncio.wait({committed}, timeout=RESEND_S if is_repeatable else UNKNOWN_OUTCOME_WAIT_S)
            if committed.done():
                return committed.result()
            if not is_repeatable:
                break
            try:
                return await self._store.commit(decision.reads, decision.changes, commit_id)
            except Conflict as conflict:
                await self.wait_for_revision(conflict.revision)
                if committed.done():
                    return committed.result()
                if self.reloads_count == reloads_count:  # else the watch may have left it out
                    raise
                break
            except (OutcomeUnknown, StoreError):
                continue
        raise _OutcomeNotFound

    async def _compute(self, function: Callable[[], ResponseT], *, is_large: bool) -> ResponseT:
        """Call a pure function, in another thread if it takes long."""
        if is_large and self._worker is not None:
            return await self._worker.call(function)
        return function()

    async def catch_up(self, timeout_ms: int | None = None) -> None:
        """Wait until the image has all commits that were made before this call, also those of other brokers.

        :raises KafkaError: UNKNOWN_SERVER_ERROR if the store cannot be read, or the image cannot change;
            REQUEST_TIMED_OUT.
        """
        if not self._store.is_shared:  # a commit is confirmed after it is in the image
            return
        if timeout_ms is None:
            await self._catch_up()
            return
        if timeout_ms <= 0:  # the change itself is refused
            return
        catching_up = self._begin(self._catch_up())
        await asyncio.wait({catching_up}, timeout=timeout_ms / 1000)
        if not catching_up.done():
            catching_up.cancel()
            message = f"The metadata store was not read within {timeout_ms} ms; nothing was changed."
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
        catching_up.result()

    async def _catch_up(self) -> None:
        try:
            revision = await self._latest_revision.read()
        except StoreError as error:
            _log.error("cannot read the metadata store", why=str(error))
            message = f"Cannot read the metadata store: {error}."
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
        await self.wait_for_revision(revision)

    async def wait_for_revision(self, revision: int) -> None:
        """Wait until this node's image is at `revision` or later, and its listeners have followed.

        :raises KafkaError: UNKNOWN_SERVER_ERROR if the watch or a listener has failed, so that the image cannot change.
        """
        if self._followed_revision < revision:
            if self._failure is not None:
                raise self._failure
            future = asyncio.get_running_loop().create_future()
            self._waiters.append((revision, future))
            await future

    @property
    def recent_hashes(self) -> Mapping[int, bytes]:
        """The hashes of the image at its last revisions, by revision; see `ImageHasher`."""
        return self._hasher.recent

    @property
    def partitions_max(self) -> int:
        """How many partitions a commit of the broker, or a part of a request, may change.

        Each depends on itself, its topic, its brokers and configs.
        """
        reserved = max(CHANGES_RESERVED, len(self.image.brokers) + 2)
        return max(1, min(PARTITIONS_MAX, (self._store.changes_max - reserved) // CHANGES_PER_PARTITION))

    @property
    def store_kind(self) -> str:
        return self._store.kind

    async def store_members(self) -> list[StoreMember]:
        return await self._store.members()

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.METADATA_REVISION, lambda: [({}, self.image.revision)])

    def statistics(self) -> dict[str, int]:
        return {
            "revision": self.image.revision,
            "commits_count": self.commits_count,
            "conflicts_count": self.conflicts_count,
            "unknown_outcomes_count": self.unknown_outcomes_count,
            "reloads_count": self.reloads_count,
            "latest_revision_reads_count": self._latest_revision.reads_count,
            "waiters_count": len(self._waiters),
            "requests_with_timeout_count": len(self._in_progress),
        }

    async def _follow(self, commits: AsyncIterator[Commit]) -> None:
        try:
            while True:
                try:
                    async for commit in commits:
                        await self._advance(commit)
                except HistoryLost as lost:
                    commits = await self._reload(lost)
        except Exception as error:  # any error must reach the requests that wait
            _log.exception("this broker cannot follow the metadata any more")
            self._failure = KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"This broker cannot follow the metadata any more, and stops: {type(error).__name__}: {error}.",
            )
            for _, future in self._waiters:
                if not future.done():
                    future.set_exception(self._failure)
            self._waiters.clear()
            self.on_failure()

    async def _advance(self, commit: Commit) -> None:
        committed = self._sent.get(commit.commit_id)
        if committed is not None and not committed.done():
            committed.set_result(commit.revision)
        before, is_large = self.image, _is_large(commit)
        after, changed, hashes = await self._compute(
            lambda: (before.replay(commit), ChangedKeys(commit.changes), hash_changes(commit)),
            is_large=is_large,
        )
        await self._hasher.replay(commit.revision, hashes)
        await self._replace_image(after, changed, is_large=is_large)

    async def _reload(self, lost: HistoryLost) -> AsyncIterator[Commit]:
        """Load the store again; for the listeners, the difference is like one commit."""
        _log.warning("loading the metadata again", why=str(lost), revision=self.image.revision)
        revision, items = await self._load_again()
        commits = self._store.watch(revision)
        before = self.image
        after = await self._compute(lambda: before.load_later(revision, items), is_large=True)
        await self._hasher.load(revision, items)
        changed = await self._compute(lambda: ChangedKeys(before.changes_to(after, items)), is_large=True)
        self.reloads_count += 1
        await self._replace_image(after, changed, is_large=True)
        return commits

    async def _load_again(self) -> tuple[int, list[Item]]:
        """Load the store, with retries: without its metadata this broker would stand still for ever."""
        while True:
            try:
                return await self._store.load()
            except WentBack:
                raise
            except StoreError as error:
                _log.warning("cannot load the metadata; retrying", why=str(error))
                await asyncio.sleep(RELOAD_RETRY_S)

    async def _replace_image(self, after: MetadataImage, changed: ChangedKeys, *, is_large: bool) -> None:
        """Make an image the present one, and wait until all listeners have followed."""
        before, self.image = self.image, after
        for listener in self._listeners:
            await listener(before, after, changed)
            if is_large:
                await asyncio.sleep(0)
        self._followed_revision = after.revision
        waiting = self._waiters
        self._waiters = [waiter for waiter in waiting if waiter[0] > after.revision]
        for revision, future in waiting:
            if revision <= after.revision and not future.done():
                future.set_result(None)


async def _with_client_errors(writing: Awaitable[ResponseT]) -> ResponseT:
    """Turn an error of the store into one for the client."""
    try:
        return await writing
    except StoreError as error:
        _log.error("cannot write to the metadata store", why=str(error))
        raise client_error(error) from error


def _is_large(commit: Commit) -> bool:
    changes = commit.changes
    return (
        len(changes) > REPLAYED_CHANGES_MAX
        or sum(len(change.value or b"") for change in changes) > REPLAYED_BYTES_MAX
    )
