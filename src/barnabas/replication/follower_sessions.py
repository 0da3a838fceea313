"""The fetch sessions of followers: one for each broker that follows partitions of this one."""

import random
from collections.abc import Sequence

from barnabas.base.buffers import Buffer
from barnabas.base.ids import TopicIdPartition
from barnabas.log.partition_log import PartitionLog
from barnabas.replication.fetch_reader import COPIED_READS_BYTES_MAX, find_divergence
from barnabas.replication.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from barnabas.replication.fetch_targets import NO_OFFSET, READ_PARTITIONS_MAX, FetchedPartition
from barnabas.replication.follower_session import FollowedPartition, FollowerSession
from barnabas.replication.partition import Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.throttle import ReplicationThrottle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import first_is_whole

#: How long after this broker began to lead a partition the fetches of its followers end.
WAKE_PAUSE_S = 0.02


class FollowerSessions:
    """Finds the session of a follower, and reads for it."""

    def __init__(self, replicas: ReplicaManager, throttle: ReplicationThrottle, rng: random.Random) -> None:
        self._replicas = replicas
        self._throttle = throttle
        self._rng = rng
        self._sessions: dict[int, FollowerSession] = {}  #: by broker id
        replicas.on_led = self._wake_followers

    def _wake_followers(self, partition: Partition) -> None:
        """End the fetches of followers that wait, so that the next ones name a partition that this broker leads now.

        After a pause, in which the followers learn of it, too. If one takes longer, its fetch ends by itself.
        """
        for broker_id in partition.replicas:
            if session := self._sessions.get(broker_id):
                session.wake_later(WAKE_PAUSE_S)

    def begin(self, broker_id: int, session_id: int, epoch: int) -> FollowerSession:
        """Return the session of a fetch; a new one replaces that of the broker.

        :raises KafkaError: FETCH_SESSION_ID_NOT_FOUND or INVALID_FETCH_SESSION_EPOCH: the follower starts a new one.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.end(broker_id)
            session = FollowerSession(self._rng.randrange(1, 2**31), broker_id)
            self._sessions[broker_id] = session
            return session
        found = self._sessions.get(broker_id)
        if found is None or found.session_id != session_id:
            message = f"Broker {broker_id} has no fetch session {session_id}."
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, message)
        if found.epoch != epoch:
            message = f"Fetch session {session_id} expects epoch {found.epoch}, not {epoch}."
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, message)
        found.epoch = next_epoch(epoch)
        return found

    def end(self, broker_id: int) -> None:
        """End the session of a broker, if it has one."""
        session = self._sessions.pop(broker_id, None)
        if session is not None:
            for key in tuple(session.targets):
                self.remove(session, key)
            session.close()

    def update_target(
        self, session: FollowerSession, key: TopicIdPartition, target: FollowedPartition, broker_epoch: int
    ) -> None:
        """Add a partition to a session, or change its position: the follower has everything before it.

        Does nothing after the end of the session: the follower has lost its connection while this leader was reading
        its request, and the next session has later positions.
        """
        if session.is_closed:
            return
        before = session.targets.get(key)
        if (
            before is not None and before.fetch_offset != target.fetch_offset
        ):  # else it may have missed an answer
            target.sent_high_watermark = before.sent_high_watermark
            target.sent_log_start_offset = before.sent_log_start_offset
        session.targets[key] = target
        session.mark(key, wakes=False)
        if not self._store_position(session, key, target, broker_epoch):
            session.mark_position_missing(key)

    def store_missing_positions(self, session: FollowerSession, broker_epoch: int) -> None:
        """Store the positions that this leader has dropped, or could not store when the follower named them.

        A follower that left the in-sync replicas may have fetched already after its return, before this leader learned
        that it had left. And it may know of a partition or an election before this broker, whose next read then has no
        error that makes the follower name its position again.
        """
        for key in session.poll_missing_positions():
            target = session.targets.get(key)
            if target is None:
                continue
            if self._store_position(session, key, target, broker_epoch):
                session.mark(key, wakes=False)
            else:
                session.mark_position_missing(key)

    def _store_position(
        self, session: FollowerSession, key: TopicIdPartition, target: FollowedPartition, broker_epoch: int
    ) -> bool:
        """Return whether the partition knows the session now, and its position unless the logs diverge."""
        partition = self._replicas.find_by_id(*key)
        if partition is None:
            return False
        partition.add_follower_session(session)
        if target.leader_epoch != partition.leader_epoch or session.broker_id not in partition.replicas:
            return False
        if _has_same_records(partition, target):
            partition.update_follower(
                session.broker_id, broker_epoch, target.log_start_offset, target.fetch_offset
            )
        return True

    def remove(self, session: FollowerSession, key: TopicIdPartition) -> None:
        """Remove a partition from a session."""
        session.targets.pop(key, None)
        partition = self._replicas.find_by_id(*key)
        if partition is not None:
            partition.remove_follower_session(session)

    def read(
        self, session: FollowerSession, max_bytes: int
    ) -> list[tuple[TopicIdPartition, FetchedPartition]]:
        """Read some of what is new for the follower, in the order in which it became new; the rest stays marked.

        The first batch is read whole, whatever `max_bytes` is (KIP-74).
        """
        max_bytes = max(max_bytes, 1)
        responses: list[tuple[TopicIdPartition, FetchedPartition]] = []
        read_bytes = 0
        for key in session.poll_marked(READ_PARTITIONS_MAX):
            target = session.targets.get(key)
            if target is None:
                continue
            if read_bytes >= max_bytes:
                session.mark(key, wakes=False)
                continue
            try:
                data = self._read(session, key, target, max_bytes - read_bytes, read_bytes)
            except KafkaError as error:
                data = FetchedPartition(key.partition, error.code)
            if _record_sent(target, data):
                responses.append((key, data))
                read_bytes += len(data.records)
        return responses

    def _read(
        self,
        session: FollowerSession,
        key: TopicIdPartition,
        target: FollowedPartition,
        remaining_bytes: int,
        read_bytes: int,
    ) -> FetchedPartition:
        partition = self._replicas.partition_by_id(*key)
        partition.check_leader(target.leader_epoch)
        if session.broker_id not in partition.replicas:
            message = f"Broker {session.broker_id} is not a replica of {partition.topic}-{partition.index}."
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        log = partition.log
        log.check_online()
        data = FetchedPartition(
            key.partition, ErrorCode.NONE, log.high_watermark, log.last_stable_offset, log.log_start_offset
        )
        data.diverging_epoch = find_divergence(partition, target.last_fetched_epoch, target.fetch_offset)
        if data.diverging_epoch is not None:
            return data
        if (
            target.fetch_offset > log.log_end_offset
        ):  # its log is empty, so it has no epoch that could diverge
            message = f"{log.log_end_offset} is the log end offset of {partition.topic}-{partition.index}."
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        if target.fetch_offset < log.log_end_offset and (
            delay_ms := self._throttle.delay_ms(partition, session.broker_id)
        ):
            session.mark_later(key, delay_ms)
            return data
        data.records = _next_records(log, target, min(target.max_bytes, remaining_bytes), read_bytes)
        self._throttle.record(partition, len(data.records))
        if target.fetch_offset < log.log_end_offset and not data.records and read_bytes > 0:
            session.mark(key, wakes=False)  # it may not have fitted
        return data

    def close(self) -> None:
        for broker_id in tuple(self._sessions):
            self.end(broker_id)

    def statistics(self) -> dict[str, int]:
        return {
            "sessions_count": len(self._sessions),
            "partitions_count": sum(len(session.targets) for session in self._sessions.values()),
            "throttled_count": sum(session.throttled_count for session in self._sessions.values()),
            **self._throttle.statistics(),
        }


def _next_records(log: PartitionLog, target: FollowedPartition, max_bytes: int, read_bytes: int) -> Buffer:
    """Return the next records for a follower.

    The result is empty if they do not fit into the response, or if the remaining offsets have no records, after
    compaction or a power failure.
    """
    for bound in (log.high_watermark, log.log_end_offset):
        if target.fetch_offset >= bound:
            continue
        records = log.read(
            target.fetch_offset,
            max_bytes,
            bound,
            min_one_batch=read_bytes == 0,
            may_copy=read_bytes < COPIED_READS_BYTES_MAX,
        ).data
        if records and (read_bytes == 0 or first_is_whole(records)):
            # Above the high watermark, the mapped file may be truncated while the records are sent.
            return records if bound == log.high_watermark else bytes(records)
        if read_bytes > 0:
            break
    return b""


def _record_sent(target: FollowedPartition, data: FetchedPartition) -> bool:
    """Store what is sent; return False if the follower knows all of it."""
    sent = (target.sent_high_watermark, target.sent_log_start_offset)
    target.sent_high_watermark, target.sent_log_start_offset = data.high_watermark, data.log_start_offset
    if data.diverging_epoch is not None:  # it truncates its log, and ignores the rest
        target.sent_high_watermark = NO_OFFSET
    is_news = sent != (data.high_watermark, data.log_start_offset)
    return bool(is_news or data.records or data.error_code or data.diverging_epoch is not None)


def _has_same_records(partition: Partition, target: FollowedPartition) -> bool:
    try:
        return find_divergence(partition, target.last_fetched_epoch, target.fetch_offset) is None
    except KafkaError:
        return False


def topics_of(
    responses: Sequence[tuple[TopicIdPartition, FetchedPartition]],
) -> list[tuple[str | bytes, list[FetchedPartition]]]:
    topics: dict[str | bytes, list[FetchedPartition]] = {}
    for (topic_id, _), data in responses:
        topics.setdefault(topic_id, []).append(data)
    return list(topics.items())
