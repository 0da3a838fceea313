"""How brokers join the cluster, leave it, and are fenced (KIP-631).

A broker lives as long as its session. It opens the session, then it joins: its registration gets a new broker epoch.
After its session has ended, the controller fences it.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from barnabas.base.ids import TopicIdPartition
from barnabas.metadata.brokers import BROKERS, SESSIONS, BrokerRegistration
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    Election,
    PartitionChange,
    brokers_up,
    build_partition_change,
    partition_puts,
)
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage

#: Partitions in one commit of elections.
ELECTIONS_MAX = 1000


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


def decide_join(
    image: MetadataImage,
    registration: BrokerRegistration,
    *,
    is_clean: bool,
    lost: Collection[TopicIdPartition] = (),
) -> Decision[BrokerRegistration]:
    """Register a broker that starts, and elect it where it may lead; return the registration with its new epoch.

    After an unclean stop the broker may lack records that it had acknowledged. So it leaves the in-sync replicas where
    there are others, and where it continues to lead, it does so in a new leader epoch. A broker that is alone in its
    cluster keeps its leader epochs, because no other broker has followed them.

    :param is_clean: The log directories were closed in order by the broker in the epoch of its last registration.
    :param lost: The replicas that were in a log directory that the broker no longer has.
    """
    key = str(registration.broker_id)
    before = image.brokers.get(key)
    registration = replace(registration, epoch=image.revision + 1, fenced=False)
    changes: list[PartitionChange] = []
    is_alone = _is_alone(image, key)
    if not is_alone or lost or (before is not None and before.fenced):
        may_lack_records = not is_clean and not is_alone
        changes.extend(
            _joined_partitions(image, registration.broker_id, lost, may_lack_records=may_lack_records)
        )
    puts, reads = partition_puts(image, changes)
    reads[BROKERS.key(key)] = image.brokers.revision(key)
    reads[SESSIONS.key(key)] = image.sessions.revision(key)
    return Decision(registration, (BROKERS.put(key, registration), *puts), reads)


def _joined_partitions(
    image: MetadataImage, broker_id: int, lost: Collection[TopicIdPartition], *, may_lack_records: bool
) -> Iterator[PartitionChange]:
    up = brokers_up(image) | {broker_id}
    for topic, index, state in _partitions(image):
        if broker_id not in state.replicas:
            continue
        if TopicIdPartition(topic.topic_id, index) in lost:
            after = _without_records(state, broker_id, up)
        elif may_lack_records:
            after = _after_unclean_stop(state, broker_id, up)
        else:
            after = build_partition_change(state, state, up)
        if after is not state:
            yield PartitionChange(topic, index, after)


def _after_unclean_stop(
    state: PartitionRegistration, broker_id: int, up: Collection[int]
) -> PartitionRegistration:
    after = build_partition_change(state, _without(state, broker_id), up)
    if after.leader == broker_id and after.leader_epoch == state.leader_epoch:
        after = replace(after, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)
    return after


def _without_records(
    state: PartitionRegistration, broker_id: int, up: Collection[int]
) -> PartitionRegistration:
    """Return the state of a partition whose replica on a broker is empty: an empty replica is never in sync.

    If it was the last one in sync, no replica is. Then only an unclean election makes the partition available.
    """
    if broker_id not in state.isr:
        return build_partition_change(state, state, up)
    if state.isr != (broker_id,):
        return build_partition_change(state, _without(state, broker_id), up)
    return replace(
        state,
        leader=NO_LEADER,
        isr=(),
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
    )


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
    allows_unclean: Callable[[str], bool] = lambda topic: False,
    limit: int = ELECTIONS_MAX,
) -> Decision[int]:
    """Elect another leader for each partition whose leader is fenced or missing, if an in-sync replica is up.

    If none is up, elect another replica where the topic allows it (unclean.leader.election.enable). Fenced brokers
    leave the in-sync replicas, except the last one. Return the number of changed partitions, at most `limit`.

    Fencing is a commit of its own, because topics may be created on a broker until it is fenced.
    """
    up = brokers_up(image)
    changes: list[PartitionChange] = []
    for topic, index, state in _partitions(image):
        if state.leader in up and up.issuperset(state.isr):
            continue
        left = tuple(broker_id for broker_id in state.isr if broker_id in up) or state.isr
        target = replace(state, isr=left)
        after = build_partition_change(state, target, up)
        if after.leader == NO_LEADER and allows_unclean(topic.name):
            after = build_partition_change(state, target, up, Election.UNCLEAN)
        if after is not state:
            changes.append(PartitionChange(topic, index, after))
            if len(changes) == limit:
                break
    return Decision(len(changes), *partition_puts(image, changes))


def _is_alone(image: MetadataImage, key: str) -> bool:
    return not image.brokers.keys() - {key}


def _without(state: PartitionRegistration, broker_id: int) -> PartitionRegistration:
    """Remove a broker from the ISR; the last in-sync replica stays."""
    return replace(state, isr=tuple(each for each in state.isr if each != broker_id) or state.isr)


def _partitions(image: MetadataImage) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    for topic in image.topics.values():
        for index in range(topic.partition_count):
            yield topic, index, image.partition(topic, index)
