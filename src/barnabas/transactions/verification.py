"""Verification of partitions in transactions (KIP-890), by coordinators of this broker."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from barnabas.base.ids import TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.transactions.partitions import Addition
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.transaction import EPOCH_BUMPS_LEVEL
from barnabas.wire.errors import ErrorCode, KafkaError


class CoordinatorVerifier:
    """Asks the shard of a transactional id; the `TransactionVerifier` of a broker."""

    def __init__(
        self, coordinator: CoordinatorRuntime[TransactionShard], config: Callable[[], BrokerConfig]
    ) -> None:
        self._coordinator = coordinator
        self._config = config

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return the error code of each partition.

        With `adds`, the partitions are added to the transaction, as by AddPartitionsToTxn.
        """
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        addition = Addition(transactional_id, producer_id, producer_epoch, partitions, EPOCH_BUMPS_LEVEL)
        try:
            if not adds:
                return await self._coordinator.query(
                    transactional_id, lambda shard, now_ms: shard.verify_partitions(addition)
                )
            await self._add(addition)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        return dict.fromkeys(partitions, ErrorCode.NONE)

    async def _add(self, addition: Addition) -> None:
        """Retry for a short time while the previous transaction is being completed."""
        config = self._config()
        pause_ms = config.integer("add.partitions.to.txn.retry.backoff.ms")
        left_ms = config.integer("add.partitions.to.txn.retry.backoff.max.ms")
        while True:
            try:
                await self._coordinator.handle_request(
                    addition.transactional_id,
                    lambda shard, result, pending: shard.add_partitions(result, pending, addition),
                )
            except KafkaError as error:
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or left_ms <= 0:
                    raise
                left_ms -= pause_ms
                await asyncio.sleep(pause_ms / 1000)
            else:
                return
