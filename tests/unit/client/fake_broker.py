"""A Kafka in memory behind a real socket, for tests of clients; a cluster of one node, unless others are added.

It keeps batches as they were sent. `answer(request type, function)` makes a function answer the next such request, and
`calls` records every request.
"""

import asyncio
import itertools
import struct
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from barnabas.client.core.request_codec import response_type
from barnabas.wire.codec import decode, encode
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import (
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from barnabas.wire.primitives import read_nullable_string, skip_tagged_fields
from barnabas.wire.records.batch import assign, iterate_headers
from barnabas.wire.records.record import decode_all
from barnabas.wire.schema import Message, Versions

NODE_ID = 1
HANG = object()  #: never respond
HANG_UP = object()  #: close the connection instead of responding

_HEADER = struct.Struct(">hhi")
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class FakeTopic:
    """Partitions as lists of batches."""

    def __init__(self, topic_id: bytes, partitions: int) -> None:
        self.topic_id = topic_id
        self.logs: list[bytearray] = [bytearray() for _ in range(partitions)]
        self.next_offsets = [0] * partitions
        self.start_offsets = [0] * partitions


class FakeBroker:
    def __init__(self, versions: dict[type[Message], Versions] | None = None) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.calls: list[Message] = []
        self.versions = versions or {}
        self.auto_create = False
        self.port = 0
        self.connections = 0
        self.nodes = {NODE_ID: self}
        self.leaders: defaultdict[tuple[str, int], int] = defaultdict(lambda: NODE_ID)
        self._scripted: defaultdict[type[Message], list[Callable[[Any], Any]]] = defaultdict(list)
        self._ids = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._appended = asyncio.Condition()
        self._handlers = _handlers(self)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> "FakeBroker":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.hang_up()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    def answer(self, request: type[Message], *functions: Callable[[Any], Any]) -> None:
        """Use each function once, in order, for the next such requests; it may return HANG or HANG_UP."""
        self._scripted[request] += functions

    def serve(self, request: type[Message], function: Callable[[Any], Any]) -> None:
        """Answer all such requests with a function, and advertise them."""
        self._handlers[request] = function

    def add(self, node_id: int, other: "FakeBroker") -> None:
        """Let another broker be a node of the same cluster; the nodes share their logs."""
        other.topics, other.nodes, other.leaders = self.topics, self.nodes, self.leaders
        self.nodes[node_id] = other

    def create(self, name: str, partitions: int = 1) -> FakeTopic:
        topic = self.topics[name] = FakeTopic(struct.pack(">qq", 7, next(self._ids)), partitions)
        return topic

    def records(self, name: str, partition: int = 0) -> list[Any]:
        return decode_all(bytes(self.topics[name].logs[partition]))

    def append(self, name: str, partition: int, batch: bytearray) -> int:
        topic = self.topics[name]
        base_offset = topic.next_offsets[partition]
        for position, header in iterate_headers(batch):
            assign(memoryview(batch)[position:], topic.next_offsets[partition], header.batch_length, 0)
            topic.next_offsets[partition] += header.last_offset_delta + 1
        topic.logs[partition] += batch
        return base_offset

    def received(self, request: type[Message]) -> list[Any]:
        return [call for call in self.calls if type(call) is request]

    def find(self, name: str, topic_id: bytes = bytes(16)) -> tuple[str, FakeTopic] | None:
        for known, topic in self.topics.items():
            if known == name or (topic_id != bytes(16) and topic.topic_id == topic_id):
                return known, topic
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        self.connections += 1
        try:
            while True:
                (size_bytes,) = struct.unpack(">i", await reader.readexactly(4))
                await self._respond(await reader.readexactly(size_bytes), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _respond(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        key, version, correlation_id = _HEADER.unpack_from(frame)
        request_type = next(each for each in self._handlers if key == each.API_KEY)
        if version not in self._range(request_type):
            assert request_type is api_versions.ApiVersionsRequest, (request_type, version)
            return self._refuse_version(correlation_id, writer)
        _, position = read_nullable_string(frame, _HEADER.size)
        if version in request_type.FLEXIBLE:
            position = skip_tagged_fields(frame, position)
        request = decode(request_type, version, frame, position)
        self.calls.append(request)
        scripted = self._scripted[request_type]
        handler = scripted.pop(0) if scripted else self._handlers[request_type]
        response = handler(request)
        if asyncio.iscoroutine(response):
            response = await response
        if response is HANG_UP:
            writer.close()
        elif response is not HANG and response is not None:
            self._write(response, version, correlation_id, writer)
        return None

    def _refuse_version(self, correlation_id: int, writer: asyncio.StreamWriter) -> None:
        served = self._range(api_versions.ApiVersionsRequest)
        api = api_versions.ApiVersion(api_key=18, min_version=served.first, max_version=served.last)
        response = api_versions.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[api])
        self._write(response, 0, correlation_id, writer)

    def _write(self, response: Message, version: int, correlation_id: int, writer: Any) -> None:
        body = bytearray(struct.pack(">i", correlation_id))
        if version in response.FLEXIBLE and not isinstance(response, api_versions.ApiVersionsResponse):
            body.append(0)
        body = encode(response, version, body)
        writer.write(struct.pack(">i", len(body)) + body)

    def _range(self, request: type[Message]) -> Versions:
        return self.versions.get(request, request.VERSIONS)

    def api_versions(self, request: Any) -> Message:
        ranges = [(each.API_KEY, self._range(each)) for each in self._handlers]
        keys = [
            api_versions.ApiVersion(api_key=key, min_version=served.first, max_version=served.last)
            for key, served in ranges
        ]
        return api_versions.ApiVersionsResponse(api_keys=keys)

    def metadata(self, request: Any) -> Message:
        requested = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        brokers = [
            metadata.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=node.port)
            for node_id, node in self.nodes.items()
        ]
        topics = [self._described(name) for name in requested]
        for name in requested:
            if name not in self.topics and request.allow_auto_topic_creation and self.auto_create:
                self.create(name)
        return metadata.MetadataResponse(
            brokers=brokers, cluster_id="fake", controller_id=NODE_ID, topics=topics
        )

    def _described(self, name: str) -> Any:
        topic = self.topics.get(name)
        if topic is None:
            return metadata.MetadataResponseTopic(name=name, error_code=UNKNOWN)
        partitions = [
            metadata.MetadataResponsePartition(
                partition_index=index, leader_id=self.leaders[name, index], leader_epoch=0,
                replica_nodes=[NODE_ID], isr_nodes=[NODE_ID],
            )
            for index in range(len(topic.logs))
        ]  # fmt: skip
        return metadata.MetadataResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions)

    def create_topics(self, request: Any) -> Message:
        results = []
        for topic in request.topics:
            result = create_topics.CreatableTopicResult(
                name=topic.name, num_partitions=max(topic.num_partitions, 1), replication_factor=1
            )
            if topic.name in self.topics:
                result.error_code = ErrorCode.TOPIC_ALREADY_EXISTS
                result.error_message = f"Topic '{topic.name}' already exists."
            elif not request.validate_only:
                result.topic_id = self.create(topic.name, max(topic.num_partitions, 1)).topic_id
            results.append(result)
        return create_topics.CreateTopicsResponse(topics=results)

    def delete_topics(self, request: Any) -> Message:
        names = [topic.name for topic in request.topics] or request.topic_names
        results = [
            delete_topics.DeletableTopicResult(
                name=name, error_code=0 if self.topics.pop(name, None) else UNKNOWN
            )
            for name in names
        ]
        return delete_topics.DeleteTopicsResponse(responses=results)

    def create_partitions(self, request: Any) -> Message:
        results = []
        for requested in request.topics:
            topic = self.topics.get(requested.name)
            result = create_partitions.CreatePartitionsTopicResult(name=requested.name)
            if topic is None:
                result.error_code = UNKNOWN
            elif requested.count <= len(topic.logs):
                result.error_code = ErrorCode.INVALID_PARTITIONS
                result.error_message = f"Topic already has {len(topic.logs)} partition(s)."
            else:
                grown = requested.count - len(topic.logs)
                topic.logs += [bytearray() for _ in range(grown)]
                topic.next_offsets += [0] * grown
                topic.start_offsets += [0] * grown
            results.append(result)
        return create_partitions.CreatePartitionsResponse(results=results)

    def describe_cluster(self, request: Any) -> Message:
        broker = describe_cluster.DescribeClusterBroker(broker_id=NODE_ID, host="127.0.0.1", port=self.port)
        return describe_cluster.DescribeClusterResponse(
            cluster_id="fake", controller_id=NODE_ID, brokers=[broker]
        )

    def describe_configs(self, request: Any) -> Message:
        results = []
        for resource in request.resources:
            result = describe_configs.DescribeConfigsResult(
                resource_type=resource.resource_type, resource_name=resource.resource_name
            )
            if resource.resource_type == 2 and resource.resource_name not in self.topics:
                result.error_code = UNKNOWN
            else:
                config = describe_configs.DescribeConfigsResourceResult
                result.configs = [
                    config(name="retention.ms", value="1000", config_source=1),
                    config(name="segment.bytes", value="1073741824", config_source=5),
                ]
            results.append(result)
        return describe_configs.DescribeConfigsResponse(results=results)

    def init_producer_id(self, request: Any) -> Message:
        return init_producer_id.InitProducerIdResponse(producer_id=next(self._ids), producer_epoch=0)

    async def produce(self, request: Any) -> Message | None:
        responses = []
        for data in request.topic_data:
            found = self.find(data.name, data.topic_id)
            answer = produce.TopicProduceResponse(name=data.name, topic_id=data.topic_id)
            for partition in data.partition_data:
                result = produce.PartitionProduceResponse(index=partition.index)
                if found is None or partition.index >= len(found[1].logs):
                    result.error_code = UNKNOWN
                else:
                    result.base_offset = self.append(found[0], partition.index, bytearray(partition.records))
                answer.partition_responses.append(result)
            responses.append(answer)
        async with self._appended:
            self._appended.notify_all()
        return produce.ProduceResponse(responses=responses) if request.acks else None

    async def fetch(self, request: Any) -> Message:
        response, size_bytes = self._read(request)
        if not size_bytes and request.min_bytes and request.max_wait_ms:
            try:
                async with asyncio.timeout(request.max_wait_ms / 1000), self._appended:
                    await self._appended.wait()
            except TimeoutError:
                return response
            response, _ = self._read(request)
        return response

    def _read(self, request: Any) -> tuple[Message, int]:
        responses, size_bytes = [], 0
        for requested in request.topics:
            found = self.find(requested.topic, requested.topic_id)
            answer = fetch.FetchableTopicResponse(topic=requested.topic, topic_id=requested.topic_id)
            for partition in requested.partitions:
                data = self._partition_data(found, partition)
                size_bytes += len(data.records or b"") or bool(data.error_code)
                answer.partitions.append(data)
            responses.append(answer)
        return fetch.FetchResponse(responses=responses), size_bytes

    def _partition_data(self, found: tuple[str, FakeTopic] | None, requested: Any) -> Any:
        data = fetch.PartitionData(partition_index=requested.partition)
        if found is None or requested.partition >= len(found[1].logs):
            data.error_code = UNKNOWN
            return data
        (name, topic), index = found, requested.partition
        if self.nodes.get(self.leaders[name, index]) is not self:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return data
        data.high_watermark = data.last_stable_offset = topic.next_offsets[index]
        data.log_start_offset = topic.start_offsets[index]
        if not topic.start_offsets[index] <= requested.fetch_offset <= topic.next_offsets[index]:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            return data
        for position, header in iterate_headers(topic.logs[index]):
            if header.next_offset > requested.fetch_offset:
                data.records = bytes(
                    topic.logs[index][position:][: max(requested.partition_max_bytes, header.size_bytes)]
                )
                break
        return data

    def list_offsets(self, request: Any) -> Message:
        topics = []
        for requested in request.topics:
            answer = list_offsets.ListOffsetsTopicResponse(name=requested.name)
            answer.partitions = [
                self._listed(requested.name, partition) for partition in requested.partitions
            ]
            topics.append(answer)
        return list_offsets.ListOffsetsResponse(topics=topics)

    def _listed(self, name: str, requested: Any) -> Any:
        topic, index = self.topics.get(name), requested.partition_index
        result = list_offsets.ListOffsetsPartitionResponse(partition_index=index)
        if topic is None or index >= len(topic.logs):
            result.error_code = UNKNOWN
        elif requested.timestamp == -1:
            result.offset = topic.next_offsets[index]
        elif requested.timestamp == -2:
            result.offset = topic.start_offsets[index]
        else:
            for record in self.records(name, index):
                if record.timestamp_ms >= requested.timestamp:
                    result.offset, result.timestamp = record.offset, record.timestamp_ms
                    break
        return result

    def delete_records(self, request: Any) -> Message:
        topics = []
        for requested in request.topics:
            answer = delete_records.DeleteRecordsTopicResult(name=requested.name)
            for partition in requested.partitions:
                topic, index = self.topics[requested.name], partition.partition_index
                last = topic.next_offsets[index]
                result = delete_records.DeleteRecordsPartitionResult(partition_index=index)
                if partition.offset > last:
                    result.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                else:
                    topic.start_offsets[index] = last if partition.offset < 0 else partition.offset
                    result.low_watermark = topic.start_offsets[index]
                answer.partitions.append(result)
            topics.append(answer)
        return delete_records.DeleteRecordsResponse(topics=topics)


def _handlers(broker: FakeBroker) -> dict[type[Message], Callable[[Any], Any]]:
    """Return each request type with the method named after its module."""
    modules = (
        api_versions, create_partitions, create_topics, delete_records, delete_topics, describe_cluster,
        describe_configs, fetch, init_producer_id, list_offsets, metadata, produce,
    )  # fmt: skip
    handlers = {}
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        request = next(
            each for each in vars(module).values()
            if isinstance(each, type) and issubclass(each, Message) and each.__name__.endswith("Request")
        )  # fmt: skip
        assert response_type(request)
        handlers[request] = getattr(broker, name)
    return handlers
