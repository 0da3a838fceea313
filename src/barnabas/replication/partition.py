"""One replica on this broker: its log, its leader, and how far it is replicated."""

import asyncio

from barnabas.log.append_info import AppendInfo
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.log.segments.segments import LogSlice
from barnabas.log.validation import AppendOrigin, ValidatedBatch
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage
from barnabas.replication.delayed_fetch import DelayedFetch
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
        self, broker_id: int, topic: TopicImage, index: int, log: PartitionLog, state: PartitionRegistration
    ) -> None:
        self.broker_id = broker_id
        self.topic = topic.name
        self.topic_id = topic.topic_id
        self.index = index
        self.log = log
        self.replicas = state.replicas
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.isr = state.isr
        #: log end offset of each follower according to its fetches; never above that of this broker
        self.follower_end_offsets: dict[int, int] = {}
        self._delayed_fetches: set[DelayedFetch] = set()
        self._waiting_for_high_watermark: list[tuple[int, asyncio.Future[None]]] = []
        #: whether fewer replicas are in sync than acks=all needs
        self._is_under_min_isr = False
        self._begin_epoch()
        self._advance_high_watermark()

    def reconfigure(self, config: LogConfig) -> None:
        """Apply the topic's changed configs."""
        self.log.config = config
        self._is_under_min_isr = len(self.isr) < self._min_isr

    def replace_log(self, log: PartitionLog) -> None:
        """Use another log with the same content, because the replica has moved to another directory."""
        assert log.log_end_offset == self.log.log_end_offset, (log.log_end_offset, self.log.log_end_offset)
        self.log = log

    def replace_with_imported_log(self, log: PartitionLog) -> None:
        """Use an imported log in place of an empty one."""
        assert self.log.log_end_offset == 0, self.log.log_end_offset
        self.log = log
        self._begin_epoch()
        self._advance_high_watermark()

    @property
    def _min_isr(self) -> int:
        """In-sync replicas that acks=all needs: min.insync.replicas, but at most the number of replicas."""
        return min(self.log.config.min_insync_replicas, max(1, len(self.replicas)))

    def update_state(self, state: PartitionRegistration) -> None:
        """Apply a new leader, epoch, replicas and ISR from cluster state."""
        if state.leader_epoch != self.leader_epoch:
            self.follower_end_offsets.clear()  # they may have been truncated since the earlier epoch
        self.replicas, self.isr = state.replicas, state.isr
        self.leader, self.leader_epoch = state.leader, state.leader_epoch
        if not self.is_leader:
            self._release_waits()
        self._begin_epoch()
        self._advance_high_watermark()

    def _begin_epoch(self) -> None:
        """Record that the leader's epoch begins at its log end offset, even if it never writes (KIP-101)."""
        self._is_under_min_isr = len(self.isr) < self._min_isr
        if self.is_leader:
            self.log.begin_epoch(self.leader_epoch)

    @property
    def is_leader(self) -> bool:
        return self.leader == self.broker_id

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Raise an error unless this broker leads the partition in this epoch.

        :raises KafkaError: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH (KIP-320).
        """
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            message = f"leader epoch {current_leader_epoch} in the request, current is {self.leader_epoch}"
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"{self.topic}-{self.index}: {message}")
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self.topic}-{self.index}: {message}")
        if self.leader != self.broker_id:
            message = f"Broker {self.broker_id} does not lead {self.topic}-{self.index}."
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)

    def validate_inline(self, records: memoryview, required_acks: int) -> ValidatedBatch | None:
        """Validate a produced batch for `append_as_leader`; None if that takes long: then use `log.validate`.

        :raises KafkaError: When the records are not valid, or too few replicas are in sync.
        """
        if required_acks == ALL_REPLICAS and self._is_under_min_isr:
            raise self._not_enough_replicas()
        return self.log.validate_inline(records)

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
        if required_acks == ALL_REPLICAS and self._is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_as_leader(batch, self.leader_epoch, verification=verification)
        self._advance_high_watermark(appended.size_bytes)
        return appended

    def append_as_coordinator(
        self, records: memoryview, verification: VerificationGuard | None = None
    ) -> AppendInfo:
        """Append a batch of a coordinator of this broker with acks=all; `records` is modified in place.

        A transaction's first batch needs the `verification` that the log returned for it.

        :raises KafkaError: As `append_as_leader`; NOT_LEADER_OR_FOLLOWER.
        """
        self.check_leader()
        if self._is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_as_leader(
            records, self.leader_epoch, AppendOrigin.COORDINATOR, verification
        )
        self._advance_high_watermark(len(records))
        return appended

    def append_transaction_marker(self, marker: EndTransactionMarker, transaction_version: int) -> AppendInfo:
        """Append a transaction marker with acks=all.

        :raises KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, INVALID_PRODUCER_EPOCH,
            TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR; nothing is appended then.
        """
        self.check_leader()
        if self._is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_transaction_marker(marker, self.leader_epoch, transaction_version)
        self._advance_high_watermark(appended.size_bytes)
        return appended

    def _not_enough_replicas(self) -> KafkaError:
        message = (
            f"{self.topic}-{self.index} has {len(self.isr)} in-sync replica(s), "
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
        return self.log.log_start_offset

    def when_replicated(self, offset: int) -> "asyncio.Future[None] | None":
        """Return a future that completes when the high watermark reaches `offset`; None if it already has."""
        if self.log.high_watermark >= offset:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_for_high_watermark.append((offset, future))
        return future

    def add_delayed_fetch(self, fetch: DelayedFetch) -> None:
        """Inform `fetch` about all new readable bytes from now on."""
        self._delayed_fetches.add(fetch)

    def remove_delayed_fetch(self, fetch: DelayedFetch) -> None:
        """Stop informing `fetch`."""
        self._delayed_fetches.discard(fetch)

    def close(self) -> None:
        """Stop leading, and release all waiting requests, before the partition is removed from this broker."""
        self.leader = NO_LEADER
        self._release_waits()

    def _release_waits(self) -> None:
        """Complete the delayed fetches, and fail the replication waits with NOT_LEADER_OR_FOLLOWER."""
        for fetch in tuple(self._delayed_fetches):
            fetch.complete()
        for _, future in self._waiting_for_high_watermark:
            if not future.done():
                message = f"Broker {self.broker_id} does not lead {self.topic}-{self.index} any longer."
                future.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message))
        self._waiting_for_high_watermark.clear()

    def statistics(self) -> dict[str, object]:
        """Return leadership, replication state and the number of delayed fetches."""
        return {
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "isr": self.isr,
            "delayed_fetches_count": len(self._delayed_fetches),
            **self.log.statistics(),
        }

    def _advance_high_watermark(self, grown_bytes: int = UNKNOWN_GROWTH_BYTES) -> None:
        """Raise the high watermark to what every in-sync replica has. Does nothing on a follower."""
        if self.leader != self.broker_id:
            return
        log = self.log
        high_watermark = log.log_end_offset
        if len(self.isr) > 1:
            end_offsets = self.follower_end_offsets
            followers = [end_offsets.get(broker, 0) for broker in self.isr if broker != self.broker_id]
            high_watermark = min(high_watermark, *followers)
        if high_watermark <= log.high_watermark:
            return
        if not self._delayed_fetches:
            log.update_high_watermark(high_watermark)
        else:
            stable_offset = log.last_stable_offset
            log.update_high_watermark(high_watermark)
            self._wake_fetches(grown_bytes, self._stable_bytes(stable_offset))
        if self._waiting_for_high_watermark:
            self._complete_replicated(high_watermark)

    def _wake_fetches(self, grown_bytes: int, stable_bytes: int) -> None:
        for fetch in tuple(self._delayed_fetches):
            fetch.readable(stable_bytes if fetch.read_committed else grown_bytes)

    def _stable_bytes(self, stable_offset: int) -> int:
        """Return the bytes between `stable_offset` and the last stable offset, which `read_committed` can now read."""
        log = self.log
        if log.last_stable_offset == stable_offset:
            return 0
        try:
            size_bytes = log.local.size_between(stable_offset, log.last_stable_offset)
        except KafkaError:
            size_bytes = None  # a read reports the same error
        return UNKNOWN_GROWTH_BYTES if size_bytes is None else size_bytes

    def _complete_replicated(self, high_watermark: int) -> None:
        waiting = self._waiting_for_high_watermark
        self._waiting_for_high_watermark = [entry for entry in waiting if entry[0] > high_watermark]
        for offset, future in waiting:
            if offset <= high_watermark and not future.done():
                future.set_result(None)
