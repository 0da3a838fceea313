"""Run tests/scenarios/replication: fetch sessions and the high watermark."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from support.batches import batch, values_of
from support.images import new_topic
from support.loop import in_virtual_time, turns
from support.nodes import RunningNode, running_node
from support.scenarios import files_of, replay, words_of

Make = Callable[..., Partition]


def ids(path: Path) -> str:
    return path.stem


class Watermark:
    """Commands on one partition of broker 1."""

    def __init__(self, make_partition: Make) -> None:
        self._make_partition = make_partition
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def run(self, command: str) -> list[str]:
        verb, words, options = words_of(command)
        try:
            lines = getattr(self, verb)(words, options)
        except KafkaError as error:
            return [error.code.name]
        await turns()
        return lines + self._released()

    def partition(self, words: list[str], options: dict[str, str]) -> list[str]:
        """partition replicas=1,2 isr=1,2 [leader=1] [epoch=0] [min.insync.replicas=1]"""
        config = {"min_insync_replicas": int(options.get("min.insync.replicas", 1))}
        self._replicas = numbers(options["replicas"])
        state = state_of(options, self._replicas)
        self._partition = self._make_partition(self._replicas, state, **config)
        return self._offsets()

    def state(self, words: list[str], options: dict[str, str]) -> list[str]:
        """state isr=1 [leader=1] [epoch=0]"""
        self._partition.update_state(state_of(options, self._replicas))
        return self._offsets()

    def produce(self, words: list[str], options: dict[str, str]) -> list[str]:
        """produce VALUE... [acks=all]"""
        acks = {"all": -1, "1": 1}[options.get("acks", "all")]
        appended = self._partition.append_as_leader(batch(*(word.encode() for word in words)), acks)
        end_offset = appended.last_offset + 1
        wait = self._partition.when_replicated(end_offset) if acks == -1 else None
        if wait is not None:
            self._waiting[end_offset] = wait
        answer = "answered" if wait is None else "waits"
        return [f"{appended.first_offset} to {appended.last_offset}: {answer}", *self._offsets()]

    def fetched(self, words: list[str], options: dict[str, str]) -> list[str]:
        """fetched BROKER END_OFFSET: a follower has everything before this offset"""
        broker_id, end_offset = map(int, words)
        self._partition.update_follower(broker_id, 1, 0, end_offset)
        return self._offsets()

    def read(self, words: list[str], options: dict[str, str]) -> list[str]:
        """read OFFSET [epoch=-1]"""
        self._partition.check_leader(int(options.get("epoch", -1)))
        found = self._partition.read(int(words[0]), 10_000, read_committed=False, min_one_batch=True)
        return [" ".join(value.decode() for value in values_of(found.data) if value) or "nothing"]

    def close(self, words: list[str], options: dict[str, str]) -> list[str]:
        """close: the partition leaves this broker"""
        self._partition.close()
        return []

    def _offsets(self) -> list[str]:
        log = self._partition.log
        return [f"high watermark {log.high_watermark} of {log.log_end_offset}"]

    def _released(self) -> list[str]:
        done = {offset: wait for offset, wait in self._waiting.items() if wait.done()}
        self._waiting = {offset: wait for offset, wait in self._waiting.items() if offset not in done}
        return [f"produce up to {offset}: {outcome_of(wait)}" for offset, wait in sorted(done.items())]


def outcome_of(wait: "asyncio.Future[None]") -> str:
    error = wait.exception()
    return error.code.name if isinstance(error, KafkaError) else "answered"


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def state_of(options: dict[str, str], replicas: tuple[int, ...]) -> PartitionRegistration:
    leader, epoch = int(options.get("leader", 1)), int(options.get("epoch", 0))
    return PartitionRegistration(leader, epoch, numbers(options["isr"]), replicas=replicas)


@pytest.mark.parametrize("path", files_of("replication/watermark"), ids=ids)
def test_high_watermark(path: Path, make_partition: Make) -> None:
    @in_virtual_time
    async def scenario() -> None:
        await replay(path, Watermark(make_partition).run)

    scenario()


class Sessions:
    """Commands on a whole node, through its Fetch; sessions are called S1, S2 ... in order of appearance."""

    def __init__(self, node: RunningNode) -> None:
        self._node = node
        self._names: dict[int, str] = {}
        self._fetching: asyncio.Task[list[str]] | None = None

    async def run(self, command: str) -> list[str]:
        verb, words, options = words_of(command)
        lines: list[str] = await getattr(self, verb)(words, options)
        return lines

    async def topics(self, words: list[str], options: dict[str, str]) -> list[str]:
        """topics NAME=PARTITIONS..."""
        await self._node.create(*(new_topic(name, int(count)) for name, count in options.items()))
        return []

    async def produce(self, words: list[str], options: dict[str, str]) -> list[str]:
        """produce TOPIC-PARTITION VALUE...: one batch for each value"""
        for value in words[1:]:
            self._partition(words[0]).append_as_leader(batch(value.encode()), 1)
        return []

    async def delete_records(self, words: list[str], options: dict[str, str]) -> list[str]:
        """delete_records TOPIC-PARTITION OFFSET"""
        self._partition(words[0]).delete_records(int(words[1]))
        return []

    async def delete(self, words: list[str], options: dict[str, str]) -> list[str]:
        """delete TOPIC"""
        await self._node.broker.metadata.write(lambda image: decide_delete(image, [TopicToDelete(words[0])]))
        return []

    async def configure(self, words: list[str], options: dict[str, str]) -> list[str]:
        """configure TOPIC key=value..."""
        change = TOPIC_CONFIGS.put(words[0], options)
        await self._node.broker.metadata.wait_for_revision(await self._node.store.commit({}, (change,)))
        return []

    async def advance(self, words: list[str], options: dict[str, str]) -> list[str]:
        """advance MILLISECONDS"""
        self._node.clock.advance(int(words[0]))
        return []

    async def sessions(self, words: list[str], options: dict[str, str]) -> list[str]:
        """sessions: the number of sessions"""
        found = self._node.broker.fetch_sessions.statistics()
        return [", ".join(f"{name.removesuffix('_count')} {count}" for name, count in found.items())]

    async def fetch(self, words: list[str], options: dict[str, str]) -> list[str]:
        """fetch TOPIC-PARTITION@OFFSET... [session=S1] [epoch=0] [forget=TOPIC-PARTITION,...]

        and [max=BYTES] [min=BYTES] [wait=MS]
        """
        started = asyncio.get_running_loop().time()
        request = self._request(words, options)
        response: FetchResponse = await self._node.ask(request, 12)
        waited_ms = round((asyncio.get_running_loop().time() - started) * 1000)
        return [f"after {waited_ms} ms"] * bool(waited_ms) + self._shown(response)

    async def begin_fetch(self, words: list[str], options: dict[str, str]) -> list[str]:
        """begin_fetch ...: like fetch, but without waiting"""
        self._fetching = asyncio.create_task(self.fetch(words, options))
        await turns()
        return self._progress()

    async def end_fetch(self, words: list[str], options: dict[str, str]) -> list[str]:
        """end_fetch: the state of that fetch"""
        await turns()
        return self._progress()

    def _progress(self) -> list[str]:
        assert self._fetching is not None
        return self._fetching.result() if self._fetching.done() else ["waits"]

    def _request(self, words: list[str], options: dict[str, str]) -> FetchRequest:
        ids_by_name = {name: session_id for session_id, name in self._names.items()}
        session = options.get("session", "none")
        return FetchRequest(
            session_id=ids_by_name.get(session, 0 if session == "none" else 12345),
            session_epoch=int(options.get("epoch", 0)),
            max_bytes=int(options.get("max", 10_000)),
            min_bytes=int(options.get("min", 0)),
            max_wait_ms=int(options.get("wait", 0)),
            topics=[self._requested(word) for word in words],
            forgotten_topics_data=[
                self._forgotten(name) for name in options.get("forget", "").split(",") if name
            ],
        )

    def _requested(self, word: str) -> FetchTopic:
        name, _, offset = word.partition("@")
        topic, _, index = name.rpartition("-")
        requested = FetchPartition(partition=int(index), fetch_offset=int(offset), partition_max_bytes=10_000)
        return FetchTopic(topic=topic, partitions=[requested])

    def _forgotten(self, name: str) -> ForgottenTopic:
        topic, _, index = name.rpartition("-")
        return ForgottenTopic(topic=topic, partitions=[int(index)])

    def _partition(self, name: str) -> Partition:
        topic, _, index = name.rpartition("-")
        return self._node.partition(topic, int(index))

    def _shown(self, response: FetchResponse) -> list[str]:
        if response.error_code:
            return [ErrorCode(response.error_code).name]
        lines = [self._name(response.session_id)]
        for topic in response.responses:
            for data in topic.partitions:
                name = f"{topic.topic}-{data.partition_index}"
                if data.error_code:
                    lines.append(f"{name}: {ErrorCode(data.error_code).name}")
                    continue
                values = " ".join(value.decode() for value in values_of(data.records) if value) or "nothing"
                lines.append(f"{name}: {values}, {data.log_start_offset} to {data.high_watermark}")
        return lines

    def _name(self, session_id: int) -> str:
        if session_id == 0:
            return "no session"
        return self._names.setdefault(session_id, f"S{len(self._names) + 1}")


@pytest.mark.parametrize("path", files_of("replication/sessions"), ids=ids)
def test_fetch_sessions(path: Path, tmp_path: Path) -> None:
    @in_virtual_time
    async def scenario() -> None:
        slots = {"max_incremental_fetch_session_cache_slots": "2"}
        async with running_node(tmp_path, **slots) as node:
            await replay(path, Sessions(node).run)

    scenario()
