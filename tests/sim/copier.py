"""An application that copies a topic exactly once: copies and read offsets are committed in one transaction."""

import asyncio

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.admin.groups import Groups
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.core.coordinators import KeyType, ask_coordinator
from barnabas.client.core.errors import check
from barnabas.client.producer.transaction_requests import TransactionalId
from barnabas.wire.errors import KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from sim.applications import (
    COPIES,
    FAILURES,
    PARTITIONS_COUNT,
    PLAIN,
    RETRY_S,
    TRANSACTION_TIMEOUT_MS,
    Application,
    Outcome,
    Produced,
)

COPIER = "copier"
COPIED_COUNT_MAX = 20
READ_MS = 500
#: Transactions per second, and the share that is committed.
COPY_RATE = 4
COPIED_SHARE = 0.8

#: The last version of Produce with topic names. It adds partitions to the transaction (KIP-890).
NAMED_PRODUCE_VERSION_MAX = 12


def copied_value(offset: int) -> bytes:
    """Return the value of the copy of the record at an offset; partitions have the same index."""
    return b"%s-%d" % (COPIER.encode(), offset)


def source_offset(value: bytes | None) -> int:
    return int((value or b"").split(b"-")[1])


class Copier(Application):
    """Each transaction has its own producer epoch, so that a late request of an earlier one is refused (KIP-890)."""

    async def copy(self) -> None:
        """Copy some records of one partition after the other, each time from the offset that is committed."""
        transactional_id = TransactionalId(self.cluster, self.name)
        while True:
            try:
                identity = await transactional_id.initialize(TRANSACTION_TIMEOUT_MS)
                while True:
                    identity = await self._copy_some(identity, self.rng.randrange(PARTITIONS_COUNT))
                    await asyncio.sleep(self.rng.expovariate(COPY_RATE))
            except FAILURES:
                await asyncio.sleep(RETRY_S)

    async def _copy_some(self, identity: ProducerIdAndEpoch, index: int) -> ProducerIdAndEpoch:
        """Return the identity of the next transaction."""
        source, target = TopicPartition(PLAIN, index), TopicPartition(COPIES, index)
        records = await self._read(source, await self._position(source))
        if not records:
            return identity
        copies = [
            Produced(target, b"", copied_value(record.offset), Outcome.UNKNOWN)
            for record in records[:COPIED_COUNT_MAX]
        ]
        await self.write(target, copies, identity, 0, version_max=NAMED_PRODUCE_VERSION_MAX)
        await self._commit_offset(identity, source, source_offset(copies[-1].value) + 1)
        return await self._end(identity, commit=self.rng.random() < COPIED_SHARE)

    async def _position(self, source: TopicPartition) -> int:
        committed = (await Groups(self.cluster).offsets(self.name, [source], stable=True)).get(source)
        if isinstance(committed, KafkaError):
            raise committed
        return committed.offset if committed is not None else 0

    async def _read(self, source: TopicPartition, position: int) -> list[ConsumedRecord]:
        async with Consumer(self.cluster, isolation=Isolation.READ_COMMITTED) as consumer:
            await consumer.assign({source: position})
            return await consumer.poll(timeout_ms=READ_MS)

    async def _commit_offset(self, identity: ProducerIdAndEpoch, source: TopicPartition, offset: int) -> None:
        committed = TxnOffsetCommitRequestPartition(source.partition, offset)
        request = TxnOffsetCommitRequest(
            self.name, self.name, *identity, topics=[TxnOffsetCommitRequestTopic(source.topic, [committed])]
        )

        async def ask(node: int) -> None:
            response: TxnOffsetCommitResponse = await self.cluster.send(request, node)
            check(response.topics[0].partitions[0].error_code, f"{self.name} cannot commit {offset}")

        await ask_coordinator(self.cluster, KeyType.GROUP, self.name, ask)

    async def _end(self, identity: ProducerIdAndEpoch, *, commit: bool) -> ProducerIdAndEpoch:
        async def ask(node: int) -> ProducerIdAndEpoch:
            response: EndTxnResponse = await self.cluster.send(
                EndTxnRequest(self.name, *identity, commit), node
            )
            check(response.error_code, f"{self.name} cannot end its transaction")
            return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

        return await ask_coordinator(self.cluster, KeyType.TRANSACTION, self.name, ask)
