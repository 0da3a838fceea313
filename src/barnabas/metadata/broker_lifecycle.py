"""How brokers join the cluster, leave it, and are fenced (KIP-631).

A broker lives as long as its session. It opens the session, then it joins: its registration gets a new broker epoch.
After its session has ended, the controller fences it.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.brokers import BROKERS, SESSIONS, BrokerRegistration, decide_register
from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.offline_replicas import build_without_records, with_offline, without_in_sync
from barnabas.metadata.partition_change_builder import (
    Election,
    PartitionChange,
    brokers_up,
    build_partition_change,
    partition_decision,
    partition_puts,
)
from barnabas.metadata.store import PARTITIONS_MAX
from barnabas.metadata.topic_rotation import TopicRotation
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage


def live_brokers(image: MetadataImage) -> list[int]:
    """Return the brokers that are not fenced and have a session, in order."""
    return sorted(broker_id for broker_id in brokers_up(image) if str(broker_id) in image.sessions)


def controller_id(image: MetadataImage) -> int | None:
    """Return the broker that fences others and elects leaders: the live broker with the smallest id, if any.

    That only one broker acts saves work, and is not needed for safety: every commit is a compare-and-set.
    """
    return min(live_brokers(image), default=None)


def dead_brokers(image: MetadataImage) -> list[int]:
    """Return the brokers to fence: their sessions have ended."""
    return sorted(broker_id for broker_id in brokers_up(image) if str(broker_id) not in image.sessions)


@dataclass(frozen=True, slots=True)
class JoiningReplicas:
    """What is known about the replicas of a broker that joins."""

    #: the log directories were closed in order by the broker in the epoch of its last registration
    is_clean: bool
    lost: Collection[TopicIdPartition] = ()  #: they were in a log directory that the broker no longer has
    offline: Collection[TopicIdPartition] = ()  #: they are in a log directory that has failed


def decide_join(
    image: MetadataImage,
    registration: BrokerRegistration,
    replicas: JoiningReplicas,
    rules: ElectionRules = DEFAULT_RULES,
) -> Decision[BrokerRegistration]:
    """Register a broker that starts, and elect it where it may lead; return the registration with its new epoch.

    After an unclean stop the broker may lack records that it had acknowledged. So it leaves the in-sync replicas where
    there are others, and where it continues to lead, it does so in a new leader epoch. A broker that is alone in its
    cluster keeps the leader epochs of partitions without other replicas: no other broker has followed them.
    """
    joining = _Joining(
        image, registration.broker_id, replicas, rules, brokers_up(image) | {registration.broker_id}
    )
    changes = [change for partition in joining.affected() for change in joining.changes(partition)]
    puts, reads = partition_puts(image, changes)
    registered = decide_register_in_new_epoch(image, registration, is_clean=replicas.is_clean)
    return Decision(registered.response, (*registered.changes, *puts), {**reads, **registered.reads})


def decide_register_in_new_epoch(
    image: MetadataImage, registration: BrokerRegistration, *, is_clean: bool
) -> Decision[BrokerRegistration]:
    """Register a broker in a new epoch, without changes of its partitions."""
    key = str(registration.broker_id)
    epoch, before = image.revision + 1, image.brokers.get(key)
    unclean_epoch = 0 if before is None else before.unclean_epoch
    if not is_clean and unclean_epoch <= _last_trashed_revision(image, registration.broker_id):
        unclean_epoch = epoch
    registration = replace(registration, epoch=epoch, unclean_epoch=unclean_epoch, fenced=False)
    reads = {BROKERS.key(key): image.brokers.revision(key), SESSIONS.key(key): image.sessions.revision(key)}
    return Decision(registration, (BROKERS.put(key, registration),), reads)


def decide_note_unclean_stop(image: MetadataImage, broker_id: int) -> Decision[bool]:
    """Note that a broker starts after an unclean stop, before it joins; return whether to call this once more.

    A topic that is undeleted afterwards leaves the broker out of its in-sync replicas; `decide_join` changes those that
    were undeleted before. Without topics in the trash there is nothing to note.
    """
    key = str(broker_id)
    broker = image.brokers.get(key)
    if broker is None or _last_trashed_revision(image, broker_id) < broker.unclean_epoch:
        return Decision(False)
    noted = replace(broker, unclean_epoch=image.revision + 1)
    return Decision(True, (BROKERS.put(key, noted),), {BROKERS.key(key): image.brokers.revision(key)})


def _last_trashed_revision(image: MetadataImage, broker_id: int) -> int:
    """Return the revision of the latest deletion among the trashed topics of a broker; -1 if it has none."""
    revisions = (
        image.trashed_topics.revision(row)
        for row, topic in image.trashed_topics.items()
        if broker_id in topic.brokers
    )
    return max(revisions, default=-1)


def decide_update(image: MetadataImage, registration: BrokerRegistration) -> Decision[None]:
    """Register changed listeners or directories of a broker; it keeps its epoch, and stays fenced if it is."""
    before = image.brokers.get(str(registration.broker_id))
    if before is None:
        return Decision(None)
    updated = replace(
        registration, epoch=before.epoch, unclean_epoch=before.unclean_epoch, fenced=before.fenced
    )
    return decide_register(image.brokers, updated)


def joining_partitions(
    image: MetadataImage, broker_id: int, replicas: JoiningReplicas
) -> list[TopicIdPartition]:
    """Return the partitions that may change when a broker joins."""
    return [
        TopicIdPartition(topic.topic_id, index)
        for topic, index in _Joining(image, broker_id, replicas, DEFAULT_RULES, ()).affected()
    ]


def decide_prepare_join(
    image: MetadataImage,
    broker_id: int,
    replicas: JoiningReplicas,
    partitions: Collection[TopicIdPartition],
    rules: ElectionRules = DEFAULT_RULES,
) -> Decision[list[TopicIdPartition]]:
    """Change some partitions as `decide_join` does, before the broker is registered; it is elected afterwards.

    Return those that do not exist: if their topic is in the trash, it may return before the broker is registered.
    """
    joining = _Joining(image, broker_id, replicas, rules, brokers_up(image))
    changes: list[PartitionChange] = []
    missing: list[TopicIdPartition] = []
    for topic_id, index in partitions:
        topic = image.topic_by_id(topic_id)
        if topic is None:
            missing.append(TopicIdPartition(topic_id, index))
        elif index < topic.partition_count:
            changes.extend(joining.changes((topic, index)))
    return partition_decision(missing, image, changes)


class _Joining:
    """The changes of the partitions of a broker that joins."""

    def __init__(
        self,
        image: MetadataImage,
        broker_id: int,
        replicas: JoiningReplicas,
        rules: ElectionRules,
        up: Collection[int],
    ) -> None:
        self._image, self._broker_id, self._replicas = image, broker_id, replicas
        self._rules, self._up = rules, up
        self._is_alone = _is_alone(image, str(broker_id))

    def affected(self) -> Iterator[tuple[TopicImage, int]]:
        """Yield the partitions with a replica on the broker, if any of them may change."""
        before = self._image.brokers.get(str(self._broker_id))
        was_fenced = before is not None and before.fenced
        replicas, states = self._replicas, self._image.partition_states.values()
        had_offline = any(self._broker_id in state.offline for state in states)
        any_may = not self._is_alone or was_fenced or had_offline or replicas.lost or replicas.offline
        if any_may or not replicas.is_clean:
            for topic, index, state in _partitions(self._image):
                if self._broker_id in state.replicas and (any_may or self._may_lack_records(state)):
                    yield topic, index

    def _may_lack_records(self, state: PartitionRegistration) -> bool:
        """Whether the replica may lack records that another one has, or had: its broker may be unregistered."""
        return not self._replicas.is_clean and (not self._is_alone or len(state.replicas) > 1)

    def changes(self, partition: tuple[TopicImage, int]) -> Iterator[PartitionChange]:
        topic, index = partition
        state = self._image.partition(topic, index)
        if self._broker_id not in state.replicas:
            return
        min_isr = self._rules.min_isr_with_elr(self._image, topic.name)
        replica = TopicIdPartition(topic.topic_id, index)
        target = with_offline(state, self._broker_id, is_offline=replica in self._replicas.offline)
        if replica in self._replicas.lost:
            after = build_without_records(state, target, self._broker_id, self._up, min_isr)
        elif self._may_lack_records(state):
            after = self._after_unclean_stop(state, target, min_isr)
        else:
            after = build_partition_change(state, target, self._up, min_isr=min_isr)
        if after is not state:
            yield PartitionChange(topic, index, after)

    def _after_unclean_stop(
        self, state: PartitionRegistration, target: PartitionRegistration, min_isr: int | None
    ) -> PartitionRegistration:
        broker_id = self._broker_id
        target = without_in_sync(target, broker_id, min_isr)
        after = build_partition_change(state, target, self._up, min_isr=min_isr, unclean=(broker_id,))
        if after.leader == broker_id and after.leader_epoch == state.leader_epoch:
            epochs = (state.leader_epoch + 1, state.partition_epoch + 1)
            after = replace(after, leader_epoch=epochs[0], partition_epoch=epochs[1])
        return after


def decide_end_session(image: MetadataImage, broker_id: int, epoch: int, by: int) -> Decision[bool]:
    """End the session of a broker that does not respond to another one (`by`), which must be live itself.

    Return whether it had this epoch and a session. The controller then fences it; if it lives, it joins again.
    """
    live = live_brokers(image)
    if by not in live or broker_id not in live or image.brokers[str(broker_id)].epoch != epoch:
        return Decision(False)
    reads = {
        key: image.revision_of(key)
        for each in (broker_id, by)
        for key in (BROKERS.key(str(each)), SESSIONS.key(str(each)))
    }
    return Decision(True, (SESSIONS.remove(str(broker_id)),), reads)


def decide_fence(image: MetadataImage, broker_id: int) -> Decision[None]:
    """Fence a broker whose session has ended; `decide_elections` then elects other leaders."""
    key = str(broker_id)
    broker = image.brokers.get(key)
    if broker is None or broker.fenced or key in image.sessions:
        return Decision(None)
    reads = {
        BROKERS.key(key): image.brokers.revision(key),
        SESSIONS.key(key): image.sessions.revision(key),
    }
    return Decision(None, (BROKERS.put(key, replace(broker, fenced=True)),), reads)


def decide_leave(image: MetadataImage, broker_id: int) -> Decision[bool]:
    """Fence a broker that stops in order (controlled shutdown, KIP-143); return whether it is fenced now.

    One that is alone in its cluster stays as it is.
    """
    key = str(broker_id)
    broker = image.brokers.get(key)
    if broker is None or _is_alone(image, key):
        return Decision(False)
    if broker.fenced:
        return Decision(True)
    put = BROKERS.put(key, replace(broker, fenced=True))
    return Decision(True, (put,), {BROKERS.key(key): image.brokers.revision(key)})


def decide_elections(
    image: MetadataImage,
    rules: ElectionRules = DEFAULT_RULES,
    limit: int = PARTITIONS_MAX,
    rotation: TopicRotation | None = None,
) -> Decision[int]:
    """Elect another leader for each partition whose leader is fenced or missing.

    In-sync and eligible replicas are elected. If none is up, another one is where the topic allows it
    (unclean.leader.election.enable). Fenced brokers leave the in-sync replicas. Return the number of changed
    partitions, at most `limit`.

    Fencing is a commit of its own, because topics may be created on a broker until it is fenced.
    """
    up = brokers_up(image)
    changes: list[PartitionChange] = []
    rotation = rotation or TopicRotation()
    for topic, index, state in _partitions(image, rotation.topics(image)):
        available = up.difference(state.offline) if state.offline else up
        if state.leader in available and available.issuperset(state.isr) and not state.elr:
            continue
        min_isr = rules.min_isr_with_elr(image, topic.name)
        left = tuple(broker_id for broker_id in state.isr if broker_id in available)
        target = replace(state, isr=left)
        after = build_partition_change(state, target, up, min_isr=min_isr)
        if after.leader == NO_LEADER and rules.allows_unclean(topic.name):
            after = build_partition_change(state, target, up, Election.UNCLEAN, min_isr=min_isr)
        if after is not state:
            changes.append(PartitionChange(topic, index, after))
            if len(changes) == limit:
                rotation.continue_in(topic)
                break
    return partition_decision(len(changes), image, changes)


def _is_alone(image: MetadataImage, key: str) -> bool:
    return not image.brokers.keys() - {key}


def _partitions(
    image: MetadataImage, topics: Iterable[TopicImage] | None = None
) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    for topic in image.topics.values() if topics is None else topics:
        for index in range(topic.partition_count):
            yield topic, index, image.partition(topic, index)
