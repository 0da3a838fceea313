"""The state of a transactional id, and its record in `__transaction_state`."""

from typing import Any, NamedTuple, Self

from barnabas.base.ids import TopicPartition
from barnabas.transactions.states import (
    IDLE,
    PREPARED,
    STATUS_OF,
    STATUSES,
    TRANSITIONS,
    TransactionState,
)
from barnabas.wire.coordinator_records.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 2**15 - 1
#: The last epoch of a producer; the one after it is for fencing.
LAST_EPOCH = EPOCH_MAX - 1
#: The timeout of transactions that never time out (KIP-939).
NEVER_MS = 2**31 - 1

#: First transaction.version with tagged fields (KIP-890).
TAGGED_FIELDS_LEVEL = 1
#: First transaction.version in which each transaction increments the epoch (KIP-890).
EPOCH_BUMPS_LEVEL = 2


class TransactionMetadata(NamedTuple):
    """A transactional id; immutable."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    updated_ms: int  #: wall time
    started_ms: int = NO_TIMESTAMP  #: wall time
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID  #: takes over when `producer_id` has no epochs left
    client_version: int = 0  #: the producer's transaction.version
    #: the epoch before the last bump, for retries (KIP-360); not stored
    last_epoch: int = NO_EPOCH

    def moved(self, state: TransactionState, **changes: Any) -> Self:
        """Return the id in another state, if the table allows it."""
        assert state in TRANSITIONS[self.state], (self, state)
        return self._replace(state=state, **{"previous_producer_id": self.producer_id, **changes})

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and markers are being written."""
        return self.state in PREPARED

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no epochs left."""
        return self.producer_epoch >= LAST_EPOCH

    @property
    def bumps_epochs(self) -> bool:
        """Whether the epoch increases with each transaction."""
        return self.client_version >= EPOCH_BUMPS_LEVEL

    def is_timed_out(self, now_ms: int, since_ms: int | None = None) -> bool:
        """Whether the transaction has exceeded its timeout.

        :param since_ms: When it began on this broker's clock, if that was not `started_ms`.
        """
        return (
            self.state is TransactionState.ONGOING
            and self.timeout_ms != NEVER_MS
            and (self.started_ms if since_ms is None else since_ms) + self.timeout_ms < now_ms
        )

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether it has been unused for `transactional.id.expiration.ms`."""
        return self.state in IDLE and self.updated_ms <= now_ms - expiration_ms

    @property
    def key(self) -> TransactionLogKey:
        return TransactionLogKey(transactional_id=self.transactional_id)

    def value(self) -> TransactionLogValue:
        """Return the value of its record, with the fields of the given level."""
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=STATUS_OF[self.state],
            transaction_partitions=None if self.state is TransactionState.EMPTY else self._topics(),
            transaction_last_update_timestamp_ms=self.updated_ms,
            transaction_start_timestamp_ms=self.started_ms,
            client_transaction_version=self.client_version,
        )

    def _topics(self) -> list[PartitionsSchema]:
        return [
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic(self.partitions).items()
        ]

    @classmethod
    def of(cls, key: TransactionLogKey, value: TransactionLogValue) -> Self:
        """Return the transaction of a record."""
        return cls(
            key.transactional_id,
            value.producer_id,
            value.producer_epoch,
            value.transaction_timeout_ms,
            STATUSES[value.transaction_status],
            value.transaction_last_update_timestamp_ms,
            value.transaction_start_timestamp_ms,
            frozenset(
                TopicPartition(topic.topic, index)
                for topic in value.transaction_partitions or ()
                for index in topic.partition_ids
            ),
            value.previous_producer_id,
            value.next_producer_id,
            value.client_transaction_version,
        )


def by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Return topic -> indexes, sorted."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics
