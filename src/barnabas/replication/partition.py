"""One replica on this broker: its log, its leader, and how far it is replicated."""

import asyncio
from collections.abc import Callable, Collection

from barnabas.base.ids import TopicIdPartition
from barnabas.base.plurals import plural
from barnabas.log.append_info import AppendInfo
from barnabas.log.gap import begin_epoch_at_gap
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.log.segments.segments import LogSlice
from barnabas.log.validation import AppendOrigin, ValidatedBatch, validate_inline
from barnabas.metadata.isr import IsrChange
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage
from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.replication.follower_session import FollowerSession
from barnabas.replication.open_transactions import abort_from_trash
from barnabas.replication.watermark_waits import WatermarkWaits
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker

#: No epoch given: the client does not know the leader epoch (KIP-320).
NO_EPOCH = -1

#: acks of a producer that waits for every in-sync replica.
ALL_REPLICAS = -1

#: Growth of unknown size: every delayed fetch reads again.
UNKNOWN_GROWTH_BYTES = 2**31


class Partition:
    """A replica on this broker. All methods run on the event loop."""

    def __init__(
        self,
        broker_id: int,
        topic: TopicImage,
        index: int,
        log: PartitionLog,
        state: PartitionRegistration,
        flush_soon: Callable[[PartitionLog], None] = lambda log: None,
    ) -> None:
        """:param flush_soon: Flushes records that consumers must not read before (flush.messages)."""
        self._flush_soon = flush_soon
        self.broker_id = broker_id
        self.topic, self.topic_id = topic.name, topic.topic_id
        self.index = index
        self._use(log)
        self.replicas = state.replicas
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.isr = state.isr
        self._is_offline = broker_id in state.offline  #: because the log directory has failed
        self.pending_isr: tuple[int, ...] | None = None  #: requested, but not committed yet
        #: log end offset of each follower according to its fetches; never above that of this broker
        self.follower_end_offsets: dict[int, int] = {}
        self._follower_epochs: dict[int, int] = {}  #: broker epoch of each follower's fetches
        self._follower_start_offsets: dict[int, int] = {}  #: log start offset of each follower
        #: follower -> an offset that it lacks, and the time since which it has lacked it
        self._lags: dict[int, tuple[int, int]] = {}
        self._epoch_start_offset = 0  #: log end offset at which this broker began to lead
        self._followers: dict[FollowerSession, None] = {}
        #: whether followers learn of a new high watermark at once, because consumers read from them
        self.wakes_for_high_watermark = False
        #: called when a follower that is not in sync has caught up
        self.on_caught_up: Callable[[Partition], None] = lambda partition: None
        self._delayed_fetches: dict[DelayedFetch, None] = {}  #: in the order of their arrival
        self._waiting_for_high_watermark = WatermarkWaits()
        self._waiting_for_low_watermark = WatermarkWaits()
        #: whether fewer replicas are in sync than acks=all needs
        self.is_under_min_isr = False
        self._begin_epoch()
        self._advance_high_watermark()

    def reconfigure(self, config: LogConfig) -> None:
        """Apply the topic's changed configs."""
        self.log.config = config
        self.is_under_min_isr = len(self.isr) < self._min_isr
        self._advance_high_watermark()

    def replace_log(self, log: PartitionLog) -> None:
        """Use another log with the same content, because the replica has moved to another directory."""
        assert log.log_end_offset == self.log.log_end_offset, (log.log_end_offset, self.log.log_end_offset)
        self._use(log)

    def replace_with_imported_log(self, log: PartitionLog) -> None:
        """Use an imported log in place of an empty one."""
        assert self.log.log_end_offset == 0, self.log.log_end_offset
        self._use(log)
        self._begin_epoch()
        self._advance_high_watermark()

    def _use(self, log: PartitionLog) -> None:
        self.log = log
        log.on_flushed = self._advance_high_watermark

    @property
    def _min_isr(self) -> int:
        """In-sync replicas that acks=all needs: min.insync.replicas, but at most the number of replicas."""
        return min(self.log.config.min_insync_replicas, max(1, len(self.replicas)))

    def update_state(self, state: PartitionRegistration) -> None:
        """Apply a new leader, epoch, replicas and ISR from cluster state."""
        if state.leader_epoch != self.leader_epoch:
            self.drop_follower_states()  # they may have been truncated since the earlier epoch
        removed = set(self.isr) - set(state.isr)
        for broker_id in removed:
            self._drop_follower_state(broker_id)
        for session in self._followers:
            if session.broker_id in removed:
                session.mark_position_missing(TopicIdPartition(self.topic_id, self.index))
        self.partition_epoch, self.pending_isr = state.partition_epoch, None
        self.replicas, self.isr = state.replicas, state.isr
        self._is_offline = self.broker_id in state.offline
        self.leader, self.leader_epoch = state.leader, state.leader_epoch
        if not self.is_leader:
            self._release_waits()
        self._mark_followers(wakes=True)
        self._begin_epoch()
        if self.is_leader and len(self.replicas) > 1:
            begin_epoch_at_gap(self.log, self.leader_epoch)
        self._advance_high_watermark()
        self._complete_deletions()

    def _begin_epoch(self) -> None:
        """Record that the leader's epoch begins at its log end offset, even if it never writes (KIP-101)."""
        self.is_under_min_isr = len(self.isr) < self._min_isr
        if self.is_leader and self.log.latest_epoch != self.leader_epoch:
            self._epoch_start_offset = self.log.log_end_offset
            self.log.begin_epoch(self.leader_epoch)
        if self.is_leader and self.log.left_trash_at:
            self._grown(abort_from_trash(self.log, self.leader_epoch))

    @property
    def is_leader(self) -> bool:
        return self.leader == self.broker_id

    @property
    def is_high_watermark_known(self) -> bool:
        """False for a new leader whose high watermark has not reached the start of its epoch yet (KIP-207)."""
        return not self.is_leader or self.log.high_watermark >= self._epoch_start_offset

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Raise an error unless this broker leads the partition in this epoch.

        :raises KafkaError: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH (KIP-320);
            KAFKA_STORAGE_ERROR if it does not lead because its log directory has failed.
        """
        if current_leader_epoch != NO_EPOCH:
            self.check_epoch(current_leader_epoch)
        if self.leader != self.broker_id:
            if self._is_offline:
                raise self.log.local.offline_error()
            message = f"Broker {self.broker_id} does not lead {self.topic}-{self.index}."
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raise an error unless this is the leader epoch, or not given.

        :raises KafkaError: FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH (KIP-320).
        """
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            message = f"leader epoch {current_leader_epoch} in the request, current is {self.leader_epoch}"
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"{self.topic}-{self.index}: {message}")
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self.topic}-{self.index}: {message}")

    def validate_inline(self, records: memoryview, required_acks: int) -> ValidatedBatch | None:
        """Validate a produced batch for `append_as_leader`; None if that takes long: then use `log.validate`.

        :raises KafkaError: When the records are not valid, or too few replicas are in sync.
        """
        if required_acks == ALL_REPLICAS and self.is_under_min_isr:
            raise self._not_enough_replicas()
        log = self.log
        return validate_inline(records, log.config, log.clock.wall_ms())

    def append_as_leader(
        self,
        batch: ValidatedBatch | memoryview,
        required_acks: int,
        verification: VerificationGuard | None = None,
    ) -> AppendInfo:
        """Append a produced batch, modified in place; records not validated yet are validated first, in any time.

        A transaction's first batch needs the `verification` that the log returned for it.

        :raises KafkaError: When the records are not valid, or too few replicas are in sync; nothing is appended then.
        """
        if required_acks == ALL_REPLICAS and self.is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_as_leader(batch, self.leader_epoch, verification=verification)
        self._grown(appended.size_bytes)
        return appended

    def append_as_coordinator(
        self, records: memoryview, verification: VerificationGuard | None = None
    ) -> AppendInfo:
        """Append a batch of a coordinator of this broker with acks=all; `records` is modified in place.

        A transaction's first batch needs the `verification` that the log returned for it.

        :raises KafkaError: As `append_as_leader`; NOT_LEADER_OR_FOLLOWER.
        """
        self.check_leader()
        if self.is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_as_leader(
            records, self.leader_epoch, AppendOrigin.COORDINATOR, verification
        )
        self._grown(len(records))
        return appended

    def append_transaction_marker(self, marker: EndTransactionMarker, transaction_version: int) -> AppendInfo:
        """Append a transaction marker with acks=all.

        :raises KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, INVALID_PRODUCER_EPOCH,
            TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR; nothing is appended then.
        """
        self.check_leader()
        if self.is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_transaction_marker(marker, self.leader_epoch, transaction_version)
        self._grown(appended.size_bytes)
        return appended

    def _not_enough_replicas(self) -> KafkaError:
        message = (
            f"{self.topic}-{self.index} has {plural(len(self.isr), 'in-sync replica')}, "
            f"min.insync.replicas is {self.log.config.min_insync_replicas}."
        )
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, message)

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        read_committed: bool,
        min_one_batch: bool,
        may_copy: bool = True,
    ) -> LogSlice:
        """Read from `start_offset` on, up to the high watermark, or the last stable offset with `read_committed`."""
        log = self.log
        bound = log.last_stable_offset if read_committed else log.high_watermark
        return log.read(start_offset, max_bytes, bound, min_one_batch=min_one_batch, may_copy=may_copy)

    def continues_in_later_segments(self, start_offset: int, *, read_committed: bool) -> bool:
        """Whether later segments have records, too, that `read` from `start_offset` leaves out."""
        log = self.log
        bound = log.last_stable_offset if read_committed else log.high_watermark
        return log.local.segments.continues(start_offset, bound)

    def delete_records(self, offset: int) -> int:
        """Delete the records below `offset` (-1: below the high watermark); returns the new log start offset.

        :raises KafkaError: OFFSET_OUT_OF_RANGE when `offset` is above the high watermark.
        """
        before_offset = self.log.high_watermark if offset == -1 else offset
        if not 0 <= before_offset <= self.log.high_watermark:
            message = (
                f"Cannot delete records of {self.topic}-{self.index} before offset {before_offset}: "
                f"the high watermark is {self.log.high_watermark}."
            )
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.log.increment_log_start_offset(before_offset)
        self._mark_followers(wakes=True)
        return self.log.log_start_offset

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the in-sync replicas."""
        others = (self._follower_start_offsets.get(each, 0) for each in self.isr if each != self.broker_id)
        return min(self.log.log_start_offset, *others) if len(self.isr) > 1 else self.log.log_start_offset

    def when_deleted(self, offset: int) -> "asyncio.Future[None] | None":
        """Return a future that completes when the low watermark reaches `offset`; None if it already has."""
        return None if self.low_watermark >= offset else self._waiting_for_low_watermark.add(offset)

    def _complete_deletions(self) -> None:
        if self._waiting_for_low_watermark:
            self._waiting_for_low_watermark.complete(self.low_watermark)

    def when_replicated(self, offset: int) -> "asyncio.Future[None] | None":
        """Return a future that completes when the high watermark reaches `offset`; None if it already has.

        :raises KafkaError: NOT_LEADER_OR_FOLLOWER, also from the future, if this broker does not lead any longer.
        """
        if self.log.high_watermark >= offset:
            return None
        self.check_leader()
        return self._waiting_for_high_watermark.add(offset)

    def add_delayed_fetch(self, fetch: DelayedFetch) -> None:
        """Inform `fetch` about all new readable bytes from now on."""
        self._delayed_fetches[fetch] = None

    def remove_delayed_fetch(self, fetch: DelayedFetch) -> None:
        """Stop informing `fetch`."""
        self._delayed_fetches.pop(fetch, None)

    def close(self) -> None:
        """Stop leading, and release all waiting requests, before the partition is removed from this broker."""
        self.leader = NO_LEADER
        self.log.on_flushed = lambda: None  # no reference cycle: the log is freed at once
        self._mark_followers(wakes=True)
        self._release_waits()

    def _release_waits(self) -> None:
        """Complete the delayed fetches, and fail the replication waits with NOT_LEADER_OR_FOLLOWER."""
        for fetch in tuple(self._delayed_fetches):
            fetch.complete()
        message = f"Broker {self.broker_id} does not lead {self.topic}-{self.index} any longer."
        for waits in (self._waiting_for_high_watermark, self._waiting_for_low_watermark):
            waits.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)

    # Followers

    def add_follower_session(self, session: FollowerSession) -> None:
        """Notify `session` about every change from now on."""
        self._followers[session] = None

    def remove_follower_session(self, session: FollowerSession) -> None:
        self._followers.pop(session, None)

    def _mark_followers(self, *, wakes: bool) -> None:
        for session in self._followers:
            session.mark(TopicIdPartition(self.topic_id, self.index), wakes=wakes)

    def drop_follower_states(self) -> None:
        """Forget how far the followers are; the high watermark stands still until each has fetched again."""
        for broker_id in {*self.follower_end_offsets, *self._lags}:
            self._drop_follower_state(broker_id)

    def _drop_follower_state(self, broker_id: int) -> None:
        self.follower_end_offsets.pop(broker_id, None)
        self._follower_epochs.pop(broker_id, None)
        self._follower_start_offsets.pop(broker_id, None)
        self._lags.pop(broker_id, None)

    def followers_with(self, offset: int) -> list[tuple[int, int]]:
        """Return the in-sync followers whose logs contain an offset, or end there, with their log end offsets."""
        return [
            (broker_id, end_offset)
            for broker_id, end_offset in self.follower_end_offsets.items()
            if broker_id in self.isr and self._follower_start_offsets[broker_id] <= offset <= end_offset
        ]

    def update_follower(self, broker_id: int, broker_epoch: int, start_offset: int, end_offset: int) -> None:
        """Store which offsets a follower has, as its fetch says; this may raise the high and low watermarks."""
        if not self.is_leader or broker_id not in self.replicas or end_offset > self.log.log_end_offset:
            return
        self.follower_end_offsets[broker_id] = end_offset
        self._follower_epochs[broker_id] = broker_epoch
        self._follower_start_offsets[broker_id] = start_offset
        self._complete_deletions()
        if broker_id in self.isr or (self.pending_isr is not None and broker_id in self.pending_isr):
            self._advance_high_watermark()
        elif self.pending_isr is None and self._is_in_sync(end_offset):
            self.on_caught_up(self)

    def _is_in_sync(self, end_offset: int) -> bool:
        """Whether a follower has everything that was acknowledged, and everything before this leader epoch."""
        return end_offset >= max(self.log.high_watermark, self._epoch_start_offset)

    def lagging_followers(self, now_ms: int, lag_ms_max: int) -> list[int]:
        """Return the in-sync followers that have lacked a record for longer than `lag_ms_max`."""
        end_offset = self.log.log_end_offset
        lagging = []
        for broker_id in self.isr:
            has_offset = self.follower_end_offsets.get(broker_id, -1)
            if broker_id == self.broker_id or has_offset >= end_offset:
                self._lags.pop(broker_id, None)
                continue
            lacks_offset, since_ms = self._lags.setdefault(broker_id, (end_offset, now_ms))
            if has_offset >= lacks_offset:
                self._lags[broker_id] = end_offset, now_ms
            elif now_ms - since_ms > lag_ms_max:
                lagging.append(broker_id)
        return lagging

    def caught_up_followers(self) -> list[int]:
        """Return the followers that are not in sync, but could be."""
        return [
            broker_id
            for broker_id in self.replicas
            if broker_id not in self.isr and self._is_in_sync(self.follower_end_offsets.get(broker_id, -1))
        ]

    def request_isr(self, lagging: Collection[int] = ()) -> IsrChange | None:
        """Return the change that adds the followers that have caught up and removes `lagging` ones; None for no change.

        Until it is committed or refused, the high watermark respects the added followers and the removed ones.
        """
        caught_up = self.caught_up_followers()
        isr = (*(broker_id for broker_id in self.isr if broker_id not in lagging), *caught_up)
        if set(isr) == set(self.isr):
            return None
        self.pending_isr = isr
        epochs = {broker_id: self._follower_epochs[broker_id] for broker_id in caught_up}
        return IsrChange(self.topic_id, self.index, self.leader_epoch, self.partition_epoch, isr, epochs)

    def cancel_isr_request(self) -> None:
        """Forget a requested change that was refused, or has been committed."""
        if self.pending_isr is not None:
            self.pending_isr = None
            self._advance_high_watermark()

    def follow_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Store what the leader says about the partition; called on a follower after an append."""
        log = self.log
        if high_watermark > log.high_watermark:
            self._raise_high_watermark(high_watermark)
        else:
            log.update_high_watermark(high_watermark)
        if log.log_start_offset < log_start_offset <= log.high_watermark:
            log.increment_log_start_offset(log_start_offset)

    def statistics(self) -> dict[str, object]:
        """Return leadership, replication state and the number of delayed fetches."""
        return {
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "isr": self.isr,
            "delayed_fetches_count": len(self._delayed_fetches),
            **self.log.statistics(),
        }

    def _grown(self, size_bytes: int) -> None:
        """Pass an append on to followers and readers."""
        if self._followers:
            self._mark_followers(wakes=True)
        self._advance_high_watermark(size_bytes)

    def _advance_high_watermark(self, appended_bytes: int | None = None) -> None:
        """Raise the high watermark to what every in-sync replica has. Does nothing on a follower.

        :param appended_bytes: The size of the records that have just been appended.
        """
        if self.leader != self.broker_id:
            return
        log = self.log
        high_watermark = log.log_end_offset
        if self.is_under_min_isr:
            return  # a record must not be visible before as many replicas have it as acks=all promises
        if len(self.isr) > 1 or self.pending_isr is not None:
            end_offsets, isr = self.follower_end_offsets, self.isr
            if self.pending_isr is not None:  # an addition may be committed already, a removal may not
                isr = tuple({*isr, *self.pending_isr})
            high_watermark = min(
                [high_watermark, *(end_offsets.get(each, 0) for each in isr if each != self.broker_id)]
            )
        if log.needs_flush and high_watermark > log.recovery_point:
            self._flush_soon(log)
            high_watermark = min(high_watermark, log.recovery_point)
        if high_watermark <= log.high_watermark:
            return
        if self._followers:
            # Otherwise they learn of it with the next records, or when their fetch ends.
            self._mark_followers(wakes=self.wakes_for_high_watermark)
        self._raise_high_watermark(high_watermark, appended_bytes)
        if self._waiting_for_high_watermark:
            self._waiting_for_high_watermark.complete(high_watermark)

    def _raise_high_watermark(self, high_watermark: int, appended_bytes: int | None = None) -> None:
        """Raise the high watermark, and count for delayed fetches the bytes that can now be read.

        :param appended_bytes: Their size, if they have just been appended.
        """
        log = self.log
        if not self._delayed_fetches:
            log.update_high_watermark(high_watermark)
            return
        before, stable_before = log.high_watermark, log.last_stable_offset
        log.update_high_watermark(high_watermark)
        grown, stable = (before, log.high_watermark), (stable_before, log.last_stable_offset)
        if appended_bytes is None or log.local.segments.active.base_offset == before:
            grown_bytes = self._size_between(*grown)
        else:
            grown_bytes = appended_bytes
        stable_bytes = grown_bytes if stable == grown else self._size_between(*stable)
        for fetch in tuple(self._delayed_fetches):
            fetch.readable(stable_bytes if fetch.read_committed else grown_bytes)

    def _size_between(self, start_offset: int, end_offset: int) -> int:
        """Return the size of the batches between two offsets.

        It is `UNKNOWN_GROWTH_BYTES` for a new segment: a delayed fetch may not get more than it has in the one before.
        """
        if start_offset == end_offset:
            return 0
        try:
            size_bytes = self.log.local.size_between(start_offset, end_offset)
        except KafkaError:
            size_bytes = None  # a read reports the same error
        return UNKNOWN_GROWTH_BYTES if size_bytes is None else size_bytes
