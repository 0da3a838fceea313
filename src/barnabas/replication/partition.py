"""One partition on this broker: its log, who leads it, and how far it is replicated."""

import asyncio

from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import AppendInfo, PartitionLog
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.log.segments.segments import LogSlice
from barnabas.log.validation import AppendOrigin, ValidatedBatch
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage
from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker

#: "No epoch given": the client does not know the leader epoch (KIP-320).
NO_EPOCH = -1

#: acks of a producer that waits for every in-sync replica.
ALL_REPLICAS = -1

#: Growth of unknown size: whoever waits for bytes looks again.
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
        #: the log end offset of each follower, as far as its fetches have told; never above our own
        self.follower_end_offsets: dict[int, int] = {}
        self._waiting_fetches: set[DelayedFetch] = set()
        self._waiting_for_high_watermark: list[tuple[int, asyncio.Future[None]]] = []
        #: whether fewer replicas are in sync than acks=all needs
        self._is_under_min_isr = False
        self._begin_epoch()
        self._advance_high_watermark()

    def reconfigure(self, config: LogConfig) -> None:
        """Take over the topic's changed configuration."""
        self.log.config = config
        self._is_under_min_isr = len(self.isr) < self._min_isr

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with another log that holds the same: the replica has moved to another directory."""
        assert log.log_end_offset == self.log.log_end_offset, (log.log_end_offset, self.log.log_end_offset)
        self.log = log

    def replace_with_imported_log(self, log: PartitionLog) -> None:
        """Go on with a log that was handed over, in the place of one that had nothing."""
        assert self.log.log_end_offset == 0, self.log.log_end_offset
        self.log = log
        self._begin_epoch()
        self._advance_high_watermark()

    @property
    def _min_isr(self) -> int:
        """The replicas that acks=all waits for: min.insync.replicas, but never more than there are."""
        return min(self.log.config.min_insync_replicas, max(1, len(self.replicas)))

    def update_state(self, state: PartitionRegistration) -> None:
        """Take over what the cluster has decided on leader and in-sync replicas."""
        if state.leader_epoch != self.leader_epoch:
            self.follower_end_offsets.clear()  # what an earlier leader was told may have been cut off since
        self.replicas, self.isr = state.replicas, state.isr
        self.leader, self.leader_epoch = state.leader, state.leader_epoch
        if not self.is_leader:
            self._let_go()
        self._begin_epoch()
        self._advance_high_watermark()

    def _begin_epoch(self) -> None:
        """A leader's epoch begins where its log ends, whether it will write or not (KIP-101)."""
        self._is_under_min_isr = len(self.isr) < self._min_isr
        if self.is_leader:
            self.log.begin_epoch(self.leader_epoch)

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        return self.leader == self.broker_id

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Refuse a request that is not for this leader in this epoch.

        :raises KafkaError: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH (KIP-320).
        """
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            asked = f"leader epoch {current_leader_epoch} was asked for, {self.leader_epoch} is current"
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"{self.topic}-{self.index}: {asked}")
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self.topic}-{self.index}: {asked}")
        if self.leader != self.broker_id:
            message = f"Broker {self.broker_id} does not lead {self.topic}-{self.index}."
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)

    def validate_inline(self, records: memoryview, required_acks: int) -> ValidatedBatch | None:
        """Check what a client produced, for `append_as_leader`; None when it takes long: `log.validate` does it then.

        :raises KafkaError: What is wrong with the records or with the replicas.
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
        """Append what a client produced, patched in place; mere records are checked first, however long it takes.

        A transaction's first batch comes with the `verification` that the log gave for it.

        :raises KafkaError: What is wrong with the records or with the replicas; nothing is appended then.
        """
        if required_acks == ALL_REPLICAS and self._is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_as_leader(batch, self.leader_epoch, verification=verification)
        self._advance_high_watermark(appended.size_bytes)
        return appended

    def append_as_coordinator(
        self, records: memoryview, verification: VerificationGuard | None = None
    ) -> AppendInfo:
        """Append a batch of a coordinator of this broker, for all replicas to have; `records` is patched in place.

        The first of a transaction comes with the `verification` that the log gave for it.

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

    def append_end_marker(self, marker: EndTransactionMarker, transaction_version: int) -> AppendInfo:
        """Append the end of a transaction, for all replicas to have.

        :raises KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, INVALID_PRODUCER_EPOCH,
            TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR; nothing is appended then.
        """
        self.check_leader()
        if self._is_under_min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_end_marker(marker, self.leader_epoch, transaction_version)
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
        committed: bool,
        min_one_batch: bool,
        may_copy: bool = True,
    ) -> LogSlice:
        """What a consumer may see from `start_offset` on: up to the high watermark or last stable offset."""
        log = self.log
        bound = log.last_stable_offset if committed else log.high_watermark
        return log.read(start_offset, max_bytes, bound, min_one_batch=min_one_batch, may_copy=may_copy)

    def delete_records(self, offset: int) -> int:
        """Make everything below `offset` (-1: below the high watermark) invisible; the new log start offset.

        :raises KafkaError: OFFSET_OUT_OF_RANGE when `offset` lies above the high watermark.
        """
        wanted = self.log.high_watermark if offset == -1 else offset
        if not 0 <= wanted <= self.log.high_watermark:
            message = (
                f"Records of {self.topic}-{self.index} before offset {wanted} cannot be deleted: "
                f"the high watermark is {self.log.high_watermark}."
            )
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.log.increment_log_start_offset(wanted)
        return self.log.log_start_offset

    def replicated(self, offset: int) -> "asyncio.Future[None] | None":
        """A future for the high watermark to reach `offset`; None when it has."""
        if self.log.high_watermark >= offset:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_for_high_watermark.append((offset, future))
        return future

    def add_waiting_fetch(self, waiting: DelayedFetch) -> None:
        """Tell `waiting` of everything that becomes readable from now on."""
        self._waiting_fetches.add(waiting)

    def remove_waiting_fetch(self, waiting: DelayedFetch) -> None:
        """Stop telling `waiting`."""
        self._waiting_fetches.discard(waiting)

    def close(self) -> None:
        """Let go of everyone who waits: the partition is going away from this broker."""
        self.leader = NO_LEADER
        self._let_go()

    def _let_go(self) -> None:
        """Complete the delayed fetches, and fail the replication waits with NOT_LEADER_OR_FOLLOWER."""
        for waiting in tuple(self._waiting_fetches):
            waiting.complete()
        for _, future in self._waiting_for_high_watermark:
            if not future.done():
                message = f"Broker {self.broker_id} does not lead {self.topic}-{self.index} any longer."
                future.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message))
        self._waiting_for_high_watermark.clear()

    def statistics(self) -> dict[str, object]:
        """Leadership, replication and who waits, for people."""
        return {
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "isr": self.isr,
            "waiting_fetches_count": len(self._waiting_fetches),
            **self.log.statistics(),
        }

    def _advance_high_watermark(self, grown_bytes: int = UNKNOWN_GROWTH_BYTES) -> None:
        """Raise the high watermark to what every in-sync replica has. A follower's only rises by fetching."""
        if self.leader != self.broker_id:
            return
        log = self.log
        high_watermark = log.log_end_offset
        if len(self.isr) > 1:
            known = self.follower_end_offsets
            behind = [known.get(broker, 0) for broker in self.isr if broker != self.broker_id]
            high_watermark = min(high_watermark, *behind)
        if high_watermark <= log.high_watermark:
            return
        if not self._waiting_fetches:
            log.update_high_watermark(high_watermark)
        else:
            stable_offset = log.last_stable_offset
            log.update_high_watermark(high_watermark)
            self._wake_fetches(grown_bytes, self._stable_bytes(stable_offset))
        if self._waiting_for_high_watermark:
            self._release(high_watermark)

    def _wake_fetches(self, grown_bytes: int, stable_bytes: int) -> None:
        for waiting in tuple(self._waiting_fetches):
            waiting.readable(stable_bytes if waiting.committed else grown_bytes)

    def _stable_bytes(self, stable_offset: int) -> int:
        """How much readers of committed records may read beyond `stable_offset`, the last stable one until now."""
        log = self.log
        if log.last_stable_offset == stable_offset:
            return 0
        try:
            size_bytes = log.size_between(stable_offset, log.last_stable_offset)
        except KafkaError:
            size_bytes = None  # they find the same, and say so
        return UNKNOWN_GROWTH_BYTES if size_bytes is None else size_bytes

    def _release(self, high_watermark: int) -> None:
        waiting = self._waiting_for_high_watermark
        self._waiting_for_high_watermark = [entry for entry in waiting if entry[0] > high_watermark]
        for offset, future in waiting:
            if offset <= high_watermark and not future.done():
                future.set_result(None)
