"""One socket to a broker, with full control over what is sent."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from barnabas.base.buffers import Buffer
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.schema import Message
from support.nodes import APIS, frame_of, response_of

TIMEOUT_S = 20
ALL_BYTES = 2**31 - 1


def newest(request: type[Message]) -> int:
    """Return the highest version that a broker serves."""
    return APIS[request.API_KEY].versions.last


def produce_request(
    topic: str, topic_id: bytes, *batches: Buffer | None, acks: int = -1, partition: int = 0
) -> ProduceRequest:
    """Build a Produce request of batches for successive partitions, starting with `partition`."""
    data = [
        PartitionProduceData(index=partition + index, records=None if batch is None else bytes(batch))
        for index, batch in enumerate(batches)
    ]
    topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=topics)


class Wire:
    """Sends requests and receives responses, as messages or bytes."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._correlation_id = 0
        self._topic_ids: dict[str, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # Bytes

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive_frame(self) -> bytes:
        """Return the next response with its size; raise EOFError if the broker closes the connection."""
        (size,) = struct.unpack(">i", self._read(4))
        return struct.pack(">i", size) + self._read(size)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                raise EOFError
            data += more
        return bytes(data)

    def is_closed(self) -> bool:
        """Whether the broker closes the connection without a response."""
        try:
            self._read(1)
        except EOFError:
            return True
        return False

    # Messages

    def send(self, request: Message, version: int | None = None) -> int:
        """Send without waiting; return the correlation id."""
        self._correlation_id += 1
        at = newest(type(request)) if version is None else version
        self.send_frame(frame_of(request, at, self._correlation_id))
        return self._correlation_id

    def receive(self, request: type[Message], correlation_id: int, version: int | None = None) -> Any:
        """Return the response to a request that was sent."""
        at = newest(request) if version is None else version
        return response_of(APIS[request.API_KEY].response, at, self.receive_frame(), correlation_id)

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Return the response to a request, at our highest version or at `version`."""
        return self.receive(type(request), self.send(request, version), version)

    # Common requests

    def topic_id(self, topic: str) -> bytes:
        """Return a topic's id; zero if the topic does not exist."""
        if topic not in self._topic_ids:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
            )
            [found] = self.ask(request).topics
            if found.error_code:
                return found.topic_id
            self._topic_ids[topic] = found.topic_id
        return self._topic_ids[topic]

    def produce(
        self,
        topic: str,
        batch: Buffer | None,
        *,
        partition: int = 0,
        acks: int = -1,
        version: int | None = None,
    ) -> PartitionProduceResponse:
        """Append one batch."""
        request = produce_request(topic, self.topic_id(topic), batch, acks=acks, partition=partition)
        response: ProduceResponse = self.ask(request, version)
        return response.responses[0].partition_responses[0]

    def fetch_request(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        max_bytes: int = ALL_BYTES,
        partition_max_bytes: int = ALL_BYTES,
        min_bytes: int = 0,
        max_wait_ms: int = 0,
        **fields: int,
    ) -> FetchRequest:
        """Build a fetch of one partition; further fields are those of FetchPartition."""
        requested = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes, **fields
        )
        return FetchRequest(
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            max_wait_ms=max_wait_ms,
            topics=[FetchTopic(topic=topic, topic_id=self.topic_id(topic), partitions=[requested])],
        )

    def fetch(
        self, topic: str, offset: int = 0, *, version: int | None = None, **options: int
    ) -> PartitionData:
        """Read one partition; options are those of `fetch_request`."""
        response: FetchResponse = self.ask(self.fetch_request(topic, offset, **options), version)
        assert response.error_code == 0, response
        return response.responses[0].partitions[0]

    def list_offset(
        self, topic: str, timestamp: int, *, partition: int = 0, version: int | None = None, **fields: int
    ) -> ListOffsetsPartitionResponse:
        """Return the offset for a timestamp or marker; further fields are those of the request and its partition."""
        epoch = fields.pop("current_leader_epoch", -1)
        requested = ListOffsetsPartition(
            partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch
        )
        request = ListOffsetsRequest(
            replica_id=fields.pop("replica_id", -1),
            topics=[ListOffsetsTopic(name=topic, partitions=[requested])],
            **fields,
        )
        found: ListOffsetsPartitionResponse = self.ask(request, version).topics[0].partitions[0]
        return found
