"""The broker's own membership: its session, its registration, and controlled shutdown."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.broker_lifecycle import (
    JoiningReplicas,
    decide_elections,
    decide_join,
    decide_leave,
    decide_note_unclean_stop,
    decide_prepare_join,
    decide_register_in_new_epoch,
    decide_update,
    joining_partitions,
)
from barnabas.metadata.brokers import SESSIONS, BrokerRegistration
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import OutcomeUnknown, SessionInUse, Store, StoreChange, StoreError
from barnabas.metadata.topic_rotation import TopicRotation
from barnabas.metadata.writer import MetadataWriter
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

#: After which time a lost session is opened again if the store failed.
RETRY_S = 1.0

#: The partitions of a larger cluster are looked at in another thread, about 5 us each: a broker that joins again serves
#: clients.
CHECKED_AT_ONCE_MAX = 1_000

#: How long a broker that stops waits for the store.
LEAVE_TIMEOUT_S = 5.0

_log = get_logger("barnabas.server")


class BrokerLifecycle:
    """Joins the cluster, joins it again if the session is lost, and leaves it."""

    def __init__(
        self,
        broker_id: int,
        store: Store,
        metadata: MetadataWriter,
        describe: Callable[[], BrokerRegistration],
        on_joined: Callable[[BrokerRegistration], None],
        offline: Callable[[], Collection[TopicIdPartition]] = tuple,
        rules: ElectionRules = DEFAULT_RULES,
    ) -> None:
        """:param describe: Returns the registration without its epoch.
        :param offline: Returns the replicas in log directories that have failed.
        :param on_joined: Called with the registration and its new epoch.
        """
        self._broker_id = broker_id
        self._store = store
        self._metadata = metadata
        self._describe = describe
        self._on_joined = on_joined
        self._offline = offline
        self._rules = rules
        self._is_member = False  #: between the start and the stop
        self._joining: asyncio.Task[None] | None = None
        self.epoch = -1  #: broker epoch
        self.lost_sessions_count = 0
        metadata.listen(self._follow_session)

    async def start(self, *, is_clean: bool, lost: Collection[TopicIdPartition]) -> None:
        """Open the session and register; see `decide_join`.

        :raises SessionInUse: If another broker with this id is running.
        """
        try:
            await self._open_session()
        except SessionInUse as error:
            message = (
                f"Broker {self._broker_id} of this cluster is running already ({error}): stop it, or start this one "
                "with another --node-id"
            )
            raise SessionInUse(message) from error
        if not self._store.is_shared:
            await self._end_other_sessions()
        await self._join(is_clean=is_clean, lost=lost)
        self._is_member = True

    async def _end_other_sessions(self) -> None:
        """End the sessions of brokers that shared the store before: no other process uses it now."""
        own = str(self._broker_id)
        ended = tuple(
            StoreChange(SESSIONS.key(key), None) for key in self._metadata.image.sessions if key != own
        )
        if ended:
            await self._metadata.wait_for_revision(await self._store.commit({}, ended))

    async def update(self) -> None:
        """Register changed listeners or directories, in the same broker epoch."""
        await self._metadata.write(lambda image: decide_update(image, self._describe()))

    async def _open_session(self) -> None:
        key, value = SESSIONS.put(str(self._broker_id), self.epoch)
        assert value is not None
        while True:
            try:
                revision = await self._store.open_session(key, value)
                break
            except OutcomeUnknown as error:  # opening it once more does no harm
                _log.warning("the metadata store did not answer", why=str(error), session=key)
        await self._metadata.wait_for_revision(revision)

    async def _join(self, *, is_clean: bool, lost: Collection[TopicIdPartition] = ()) -> None:
        if not is_clean:
            while await self._metadata.write(lambda image: decide_note_unclean_stop(image, self._broker_id)):
                pass
        if not is_clean or lost:  # no leader may add it to the ISR again by what it fetched before
            await self._metadata.write(lambda image: decide_leave(image, self._broker_id))
        replicas = JoiningReplicas(is_clean, lost, self._offline())
        image = self._metadata.image
        is_large = sum(topic.partition_count for topic in image.topics.values()) > CHECKED_AT_ONCE_MAX
        find = partial(joining_partitions, image, self._broker_id, replicas)
        partitions = await asyncio.to_thread(find) if is_large else find()
        limit = self._metadata.partitions_max
        if len(partitions) <= limit:
            described = self._describe()
            registration = await self._metadata.write(
                lambda image: decide_join(image, described, replicas, self._rules), is_large=is_large
            )
        else:  # in parts; the controller then elects this broker where it may lead
            while partitions:
                missing = await self._prepare_join(replicas, partitions, limit)
                image = self._metadata.image
                partitions = [each for each in missing if image.topic_by_id(each.topic_id) is not None]
            registration = await self._metadata.write(
                lambda image: decide_register_in_new_epoch(image, self._describe(), is_clean=is_clean)
            )
        self.epoch = registration.epoch
        self._on_joined(registration)

    async def _prepare_join(
        self, replicas: JoiningReplicas, partitions: Sequence[TopicIdPartition], limit: int
    ) -> list[TopicIdPartition]:
        """Change the partitions in parts; return those that do not exist, see `decide_prepare_join`."""
        missing: list[TopicIdPartition] = []
        for first in range(0, len(partitions), limit):
            decide = partial(
                decide_prepare_join,
                broker_id=self._broker_id,
                replicas=replicas,
                partitions=partitions[first : first + limit],
                rules=self._rules,
            )
            missing_here = await self._metadata.write(decide, is_large=True)
            missing += missing_here
        return missing

    async def _follow_session(
        self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys
    ) -> None:
        """Join again if the session has ended, although this broker lives."""
        if self._is_member and self._joining is None and self._is_out(after):
            self.lost_sessions_count += 1
            _log.warning("the session of this broker has ended; joining the cluster again")
            self._joining = asyncio.get_running_loop().create_task(self._join_again())

    def _is_out(self, image: MetadataImage) -> bool:
        """Whether this broker has no session, or is fenced because its session had ended for a while."""
        key = str(self._broker_id)
        registration = image.brokers.get(key)
        return key not in image.sessions or (registration is not None and registration.fenced)

    async def _join_again(self) -> None:
        has_joined = False
        while not has_joined or self._is_out(self._metadata.image):
            try:
                await self._open_session()
                await self._join(is_clean=True)  # this process lives: its logs have everything
                has_joined = True
            except (StoreError, OutcomeUnknown, KafkaError) as error:
                _log.warning("cannot join the cluster; retrying", why=str(error))
                await asyncio.sleep(RETRY_S)
            except Exception:  # any error: a broker that does not join again stays fenced
                _log.exception("cannot join the cluster; retrying")
                await asyncio.sleep(RETRY_S)
        self._joining = None

    async def leave(self) -> None:
        """Hand the partitions over and end the session, in a controlled shutdown."""
        await self.abandon()
        for step in (self._hand_over, self._close_session):
            try:
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await step()
            except (TimeoutError, StoreError, OutcomeUnknown, KafkaError) as error:
                _log.warning("stopping without a controlled shutdown", why=str(error) or "timeout")

    async def _hand_over(self) -> None:
        if await self._metadata.write(lambda image: decide_leave(image, self._broker_id)):
            clean_ones = ElectionRules(self._rules.min_isr)
            limit = self._metadata.partitions_max
            elections = partial(decide_elections, rules=clean_ones, limit=limit, rotation=TopicRotation())
            while await self._metadata.write(elections, is_large=True):
                pass

    async def _close_session(self) -> None:
        await self._store.close_session(SESSIONS.key(str(self._broker_id)))

    async def abandon(self) -> None:
        """Stop following the session: if it ends now, the broker does not join again."""
        self._is_member = False
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
            self._joining = None

    def statistics(self) -> dict[str, int]:
        return {"broker_epoch": self.epoch, "lost_sessions_count": self.lost_sessions_count}
