"""Applications that delete records, and topics that return from the trash."""

import asyncio

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.extensions.trash import Trashed
from barnabas.client.admin.model import NewTopic
from barnabas.client.producer.producer import Producer
from barnabas.wire.errors import ErrorCode, KafkaError
from sim.applications import FAILURES, PARTITIONS_COUNT, RETRY_S, SHORTENED, Application

#: Records that are sent before some may be deleted, and the share of the times that they are.
SENT_COUNT_MAX = 10
DELETED_RECORDS_SHARE = 0.4
SHORTEN_RATE = 3

#: The topic that is deleted and undeleted, and how long it is in the trash.
RECYCLED = TopicPartition("recycled", 0)
IN_TRASH_S = 3.0
#: With these errors the topic is not in the trash, or not known to be there yet.
_NOT_IN_TRASH = frozenset({ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class Shortener(Application):
    """Deletes records from the start of logs (DeleteRecords); those that follow must not be lost."""

    async def shorten(self) -> None:
        while True:
            tp = TopicPartition(SHORTENED, self.rng.randrange(PARTITIONS_COUNT))
            try:
                async with Producer(self.cluster, linger_ms=5, clock=self.clock) as producer:
                    for _ in range(self.rng.randint(1, SENT_COUNT_MAX)):
                        await self.send_and_wait(producer, tp)
                    if self.rng.random() < DELETED_RECORDS_SHARE:
                        await self._delete_records(tp)
            except FAILURES:
                await asyncio.sleep(RETRY_S)
            await asyncio.sleep(self.rng.expovariate(SHORTEN_RATE))

    async def _delete_records(self, tp: TopicPartition) -> None:
        last = max((record.offset for record in self.journal.records if record.tp == tp), default=0)
        before = self.journal.deleted_to[tp]
        offset = self.rng.randint(before, max(before, last + 1))
        self.journal.deleted_to[tp] = offset  # it may be deleted at any time, also after an error
        await Admin(self.once).delete_records({tp: offset})


class Recycler(Application):
    """Deletes a topic and undeletes it; its records must return."""

    async def recycle(self) -> None:
        await self._create()
        while True:
            try:
                producer = Producer(self.cluster, linger_ms=5, delivery_timeout_ms=5_000, clock=self.clock)
                async with producer:
                    for _ in range(self.rng.randint(1, SENT_COUNT_MAX)):
                        await self.send_and_wait(producer, RECYCLED)
                await Admin(self.cluster).delete_topics([RECYCLED.topic])
                await asyncio.sleep(self.rng.expovariate(1 / IN_TRASH_S))
            except FAILURES:
                await asyncio.sleep(RETRY_S)
            await self.undelete()

    async def undelete(self) -> None:
        """Undelete the topic, unless it exists."""
        while True:
            try:
                await Admin(self.once).undelete_topic(Trashed(RECYCLED.topic))
                return
            except FAILURES as error:
                if isinstance(error, KafkaError) and error.code in _NOT_IN_TRASH:
                    return
            await asyncio.sleep(RETRY_S)

    async def _create(self) -> None:
        topic = NewTopic(RECYCLED.topic, 1, self.journal.brokers_count)
        while True:
            try:
                result = (await Admin(self.cluster).create_topics([topic]))[RECYCLED.topic]
            except FAILURES:
                continue
            if not isinstance(result, KafkaError) or result.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                return
            await asyncio.sleep(RETRY_S)
