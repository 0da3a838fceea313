"""The blocking interface of the client: the same calls, run on an event loop in a thread.

with BlockingClient("127.0.0.1:9092") as client:
    client.admin.create_topics([NewTopic("greetings")])
    with client.producer() as producer:
        producer.send_and_wait("greetings", b"hello")
    for record in client.consumer({TopicPartition("greetings", 0): EARLIEST}, stop_at_end=True):
        print(record.value)
"""

import asyncio
import concurrent.futures
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar
from weakref import WeakSet

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import admin as aio_admin
from barnabas.client.admin import groups as aio_groups
from barnabas.client.admin import transactions as aio_transactions
from barnabas.client.consumer import consumer as aio_consumer
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.client.consumer.consumer import Start
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.loop_thread import LoopThread
from barnabas.client.producer import producer as aio_producer
from barnabas.client.producer.accumulator import RecordMetadata
from barnabas.wire.records.record import RecordHeaders

InnerT = TypeVar("InnerT")
ResultT = TypeVar("ResultT")
Arguments = ParamSpec("Arguments")


class _BlockingWrapper(Generic[InnerT]):
    """An asynchronous object and its event loop."""

    def __init__(self, inner: InnerT, loop: LoopThread) -> None:
        self.inner = inner
        self.loop = loop


def _blocking(
    method: Callable[Concatenate[InnerT, Arguments], Coroutine[Any, Any, ResultT]],
) -> Callable[Concatenate[_BlockingWrapper[InnerT], Arguments], ResultT]:
    """Return a blocking method with the same arguments, result and errors."""

    @functools.wraps(method)
    def call(
        wrapper: _BlockingWrapper[InnerT], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> ResultT:
        return wrapper.loop.run(method(wrapper.inner, *args, **kwargs))

    return call


class BlockingAdmin(_BlockingWrapper[aio_admin.Admin]):
    """See `barnabas.client.admin.admin.Admin`."""

    send = _blocking(aio_admin.Admin.send)
    describe_topics = _blocking(aio_admin.Admin.describe_topics)
    create_topics = _blocking(aio_admin.Admin.create_topics)
    delete_topics = _blocking(aio_admin.Admin.delete_topics)
    create_partitions = _blocking(aio_admin.Admin.create_partitions)
    describe_configs = _blocking(aio_admin.Admin.describe_configs)
    alter_configs = _blocking(aio_admin.Admin.alter_configs)
    replace_configs = _blocking(aio_admin.Admin.replace_configs)
    list_config_resources = _blocking(aio_admin.Admin.list_config_resources)
    list_offsets = _blocking(aio_admin.Admin.list_offsets)
    delete_records = _blocking(aio_admin.Admin.delete_records)
    describe_acls = _blocking(aio_admin.Admin.describe_acls)
    describe_acl_use = _blocking(aio_admin.Admin.describe_acl_use)
    create_acls = _blocking(aio_admin.Admin.create_acls)
    delete_acls = _blocking(aio_admin.Admin.delete_acls)
    describe_cluster = _blocking(aio_admin.Admin.describe_cluster)
    describe_client_quotas = _blocking(aio_admin.Admin.describe_client_quotas)
    alter_client_quotas = _blocking(aio_admin.Admin.alter_client_quotas)
    describe_user_scram_credentials = _blocking(aio_admin.Admin.describe_user_scram_credentials)
    alter_user_scram_credentials = _blocking(aio_admin.Admin.alter_user_scram_credentials)
    elect_leaders = _blocking(aio_admin.Admin.elect_leaders)
    alter_partition_reassignments = _blocking(aio_admin.Admin.alter_partition_reassignments)
    list_partition_reassignments = _blocking(aio_admin.Admin.list_partition_reassignments)
    describe_features = _blocking(aio_admin.Admin.describe_features)
    update_features = _blocking(aio_admin.Admin.update_features)
    describe_metadata_quorum = _blocking(aio_admin.Admin.describe_metadata_quorum)
    describe_log_dirs = _blocking(aio_admin.Admin.describe_log_dirs)
    alter_replica_log_dirs = _blocking(aio_admin.Admin.alter_replica_log_dirs)
    unregister_broker = _blocking(aio_admin.Admin.unregister_broker)
    roll_back = _blocking(aio_admin.Admin.roll_back)
    describe_trash = _blocking(aio_admin.Admin.describe_trash)
    undelete_topic = _blocking(aio_admin.Admin.undelete_topic)
    purge_topics = _blocking(aio_admin.Admin.purge_topics)
    import_segments = _blocking(aio_admin.Admin.import_segments)


class BlockingGroups(_BlockingWrapper[aio_groups.Groups]):
    """See `barnabas.client.admin.groups.Groups`."""

    list = _blocking(aio_groups.Groups.list)
    describe = _blocking(aio_groups.Groups.describe)
    delete = _blocking(aio_groups.Groups.delete)
    offsets = _blocking(aio_groups.Groups.offsets)
    commit_offsets = _blocking(aio_groups.Groups.commit_offsets)
    delete_offsets = _blocking(aio_groups.Groups.delete_offsets)
    remove_members = _blocking(aio_groups.Groups.remove_members)


class BlockingTransactions(_BlockingWrapper[aio_transactions.Transactions]):
    """See `barnabas.client.admin.transactions.Transactions`."""

    list = _blocking(aio_transactions.Transactions.list)
    describe = _blocking(aio_transactions.Transactions.describe)
    producers = _blocking(aio_transactions.Transactions.producers)
    abort = _blocking(aio_transactions.Transactions.abort)
    terminate = _blocking(aio_transactions.Transactions.terminate)


class BlockingProducer(_BlockingWrapper[aio_producer.Producer]):
    """See `barnabas.client.producer.producer.Producer`."""

    send_and_wait = _blocking(aio_producer.Producer.send_and_wait)
    flush = _blocking(aio_producer.Producer.flush)
    close = _blocking(aio_producer.Producer.close)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: RecordHeaders = (),
        timestamp_ms: int | None = None,
    ) -> concurrent.futures.Future[RecordMetadata]:
        """Add a record to its batch, and wait for room if necessary; return the future of its delivery.

        :raises KafkaError: The error of the topic.
        :raises BrokerConnectionError: If no broker answers.
        """

        async def put() -> concurrent.futures.Future[RecordMetadata]:
            delivery = await self.inner.send(
                topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
            )
            future: concurrent.futures.Future[RecordMetadata] = concurrent.futures.Future()
            delivery.add_done_callback(functools.partial(_copy_result, future))
            return future

        return self.loop.run(put())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(flush=error is None)


class BlockingConsumer(_BlockingWrapper[aio_consumer.Consumer]):
    """See `barnabas.client.consumer.consumer.Consumer`."""

    assign = _blocking(aio_consumer.Consumer.assign)
    poll = _blocking(aio_consumer.Consumer.poll)
    close = _blocking(aio_consumer.Consumer.close)

    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Iterate over records; ends when all partitions have been read to their end."""
        while not self.inner.finished:
            yield from self.poll()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class BlockingClient:
    """A cluster, and the interfaces to it; connects immediately. Use it as a context manager, or `close` it."""

    def __init__(self, bootstrap: str | Sequence[str], **options: Any) -> None:
        """:param options: Those of `ClusterClient`.
        :raises ValueError: If `bootstrap` contains no broker.
        :raises BrokerConnectionError: If no broker answers.
        """
        self._loop = LoopThread("barnabas-client")
        self._producers: WeakSet[aio_producer.Producer] = WeakSet()
        try:
            self.cluster = self._loop.run(_connected(bootstrap, options))
        except BaseException:
            self._loop.stop()
            raise
        self.admin = BlockingAdmin(aio_admin.Admin(self.cluster), self._loop)
        self.groups = BlockingGroups(aio_groups.Groups(self.cluster), self._loop)
        self.transactions = BlockingTransactions(aio_transactions.Transactions(self.cluster), self._loop)

    def producer(self, **options: Any) -> BlockingProducer:
        """Return a producer; `options` are those of `barnabas.client.producer.producer.Producer`."""
        producer = aio_producer.Producer(self.cluster, **options)
        self._producers.add(producer)
        return BlockingProducer(producer, self._loop)

    def consumer(
        self, starts: Mapping[TopicPartition, Start], *, stop_at_end: bool = False, **options: Any
    ) -> BlockingConsumer:
        """Return a consumer of these partitions; `options` are those of `barnabas.client.consumer.consumer.Consumer`.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION and others, for the first partition that fails.
        """
        consumer = BlockingConsumer(aio_consumer.Consumer(self.cluster, **options), self._loop)
        consumer.assign(starts, stop_at_end=stop_at_end)
        return consumer

    def close(self) -> None:
        """Close all connections and end the thread; records that are not delivered yet are dropped."""
        for producer in list(self._producers):
            self._loop.run(producer.close(flush=False))
        self._loop.run(self.cluster.close())
        self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


async def _connected(bootstrap: str | Sequence[str], options: Mapping[str, Any]) -> ClusterClient:
    return await ClusterClient(bootstrap, **options).__aenter__()


def _copy_result(
    future: concurrent.futures.Future[RecordMetadata], delivery: asyncio.Future[RecordMetadata]
) -> None:
    if delivery.cancelled():
        future.cancel()
    elif (error := delivery.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(delivery.result())
