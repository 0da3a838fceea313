"""A second client in a process of its own, which sends small requests every millisecond and records the longest
wait.
"""

import multiprocessing
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.records.record import Record, encode_batch
from barnabas.wire.schema import Message
from bench.stalls.client import FrameClient
from bench.stalls.forms import APIS, frame_of

TOPIC = "probe"
INTERVAL_S = 0.001

#: The last versions that name topics.
NAMED_VERSION = 12


def _frames() -> list[bytes]:
    batch = bytes(encode_batch([Record(0, 1_000, None, b"probe")]))
    produced = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    fetched = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1_000)])
    named = MetadataRequestTopic(name=TOPIC)
    requests: list[Message] = [
        ApiVersionsRequest(client_software_name="probe", client_software_version="1"),
        MetadataRequest(topics=[named], allow_auto_topic_creation=False),
        ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[produced]),
        FetchRequest(replica_id=-1, max_wait_ms=0, max_bytes=1_000, session_epoch=-1, topics=[fetched]),
    ]
    return [
        frame_of(APIS[each.API_KEY], each, min(APIS[each.API_KEY].versions.last, NAMED_VERSION), 1)
        for each in requests
    ]


def _ask_on(bootstrap: str, parent: Connection) -> None:
    """Send requests until the parent closes its end; report the longest wait in ms since the last report when
    asked.
    """
    frames, longest_s = _frames(), 0.0
    with FrameClient(bootstrap) as client:
        while True:
            for frame in frames:
                started_s = time.perf_counter()
                if client.ask(frame) is None:
                    raise EOFError
                longest_s = max(longest_s, time.perf_counter() - started_s)
            if parent.poll(INTERVAL_S):
                if parent.recv() is None:
                    return
                parent.send(longest_s * 1_000)
                longest_s = 0.0


class Probe:
    """Runs while its block runs."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def __enter__(self) -> Self:
        self._start()
        return self

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_ask_on, args=(self._bootstrap, there), daemon=True)
        self._process.start()
        there.close()  # so that the end of the process is noticed
        self.take_longest_ms()

    def restart(self) -> None:
        """Replace the process, which has lost its connection.

        :raises EOFError: If the broker does not serve any more.
        """
        self._process.join()
        self._start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(BrokenPipeError):  # the process has lost its connection
            self._here.send(None)
        self._process.join()

    def take_longest_ms(self) -> float:
        """Return the longest wait for a response since the last call."""
        self._here.send("longest")
        longest_ms: float = self._here.recv()
        return longest_ms
