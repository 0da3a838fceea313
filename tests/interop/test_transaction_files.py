"""Transactions on disk: Kafka and Barnabas write the same files, and each continues with the other's.

The same transactions are written directly to both, with transaction verification disabled.
"""

import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from interop.brokers import Broker
from interop.reference import tool

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.records.record import decode_all
from interop import candidate, reference
from support.batches import batch
from support.transactions import (
    marker,
    outcomes,
    transactional,
    transactional_produce_request,
    write_markers_request,
)
from support.waiting import until
from support.wire import Wire

TOPIC = "tx"
SETTINGS = {"node.id": "1", "transaction.partition.verification.enable": "false"}
#: Several segments, and an index dense enough to limit the aborted transactions in a fetch.
CONFIGS = {"segment.ms": str(2**62), "internal.segment.bytes": "2500", "index.interval.bytes": "300"}
PRODUCERS = (9001, 9002, 9003)
STEPS_COUNT = 80
START: dict[str, Callable[[Path], Broker]] = {
    "kafka": lambda home: reference.start(home, SETTINGS | reference.SHORT_SESSION),
    "barnabas": lambda home: candidate.start(home, SETTINGS),
}


def connect(broker: Broker) -> Wire:
    return Wire(int(broker.bootstrap.rpartition(":")[2]))


def create(wire: Wire) -> None:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in CONFIGS.items()]
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=configs)
    answer = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    assert answer.topics[0].error_code == ErrorCode.NONE
    until(lambda: wire.list_offset(TOPIC, -1, version=7).error_code == ErrorCode.NONE)


def write(wire: Wire) -> None:
    """Write transactions of three producers alternately; some end, those of the first two stay open."""
    rng = random.Random(98)
    sequences = dict.fromkeys(PRODUCERS, 0)
    for _ in range(STEPS_COUNT):
        producer, choice = rng.choice(PRODUCERS), rng.random()
        if choice < 0.25:
            request = write_markers_request(
                marker(producer, TOPIC, commit=rng.random() < 0.4, coordinator_epoch=4)
            )
            assert set(outcomes(wire.ask(request, 1)).values()) == {ErrorCode.NONE}
            continue
        value = b"v" * rng.randrange(300)
        records = batch(value) if choice < 0.35 else transactional(producer, sequences[producer], value)
        sequences[producer] += choice >= 0.35
        answer = (
            wire.ask(transactional_produce_request(TOPIC, records), 9).responses[0].partition_responses[0]
        )
        assert answer.error_code == ErrorCode.NONE
    for producer in PRODUCERS[:2]:
        wire.ask(
            transactional_produce_request(TOPIC, transactional(producer, sequences[producer], b"open")), 9
        )


def read(wire: Wire, offset: int, *, committed: bool) -> tuple[Any, ...]:
    request = wire.fetch_request(TOPIC, offset)
    request.isolation_level = int(committed)
    response: FetchResponse = wire.ask(request, 11)
    data = response.responses[0].partitions[0]
    aborted = data.aborted_transactions
    return (
        data.high_watermark,
        data.last_stable_offset,
        None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted],
        [record.offset for record in decode_all(bytes(data.records or b""))],
    )


def responses(wire: Wire) -> dict[str, Any]:
    """Return all fetches and descriptions of the transactions."""
    end = wire.list_offset(TOPIC, -1, version=7).offset
    request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])])
    producers = wire.ask(request, 0).topics[0].partitions[0].active_producers
    return {
        "end": end,
        "stable": wire.list_offset(TOPIC, -1, isolation_level=1, version=7).offset,
        "committed": [read(wire, offset, committed=True) for offset in range(end)],
        "uncommitted": [read(wire, offset, committed=False) for offset in range(end)],
        "producers": sorted(
            (
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.coordinator_epoch,
                each.current_txn_start_offset,
            )
            for each in producers
        ),
    }


@dataclass
class Written:
    """A broker's responses about the transactions, and its directories after a kill and after a clean stop."""

    responses: dict[str, Any]
    killed: Path
    stopped: Path

    def files(self, suffix: str) -> list[Path]:
        return sorted((self.stopped / "data" / f"{TOPIC}-0").glob(f"*{suffix}"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    return {name: run(start, tmp_path_factory.mktemp(name)) for name, start in START.items()}


def run(start: Callable[[Path], Broker], home: Path) -> Written:
    stopped, killed = home / "stopped", home / "killed"
    stopped.mkdir()
    broker = start(stopped)
    try:
        with connect(broker) as wire:
            create(wire)
            write(wire)
            seen = responses(wire)
    finally:
        broker.kill()
    shutil.copytree(stopped, killed)
    broker = start(stopped)
    try:
        with connect(broker) as wire:
            assert responses(wire) == seen
    finally:
        broker.stop()
    return Written(seen, killed, stopped)


def dump(files: list[Path]) -> dict[str, list[str]]:
    """Return DumpLogSegments' output for each file, without fields that must differ; producers are unordered."""
    printed = tool("kafka-dump-log", "--files", ",".join(map(str, files))).stdout
    lines: dict[str, list[str]] = {}
    for line in printed.splitlines():
        if line.startswith("Dumping "):
            name = Path(line.removeprefix("Dumping ")).name
        else:
            plain = re.sub(r"([Tt]imestamp|CreateTime|crc): \d+|partitionLeaderEpoch: \d+", "", line)
            lines.setdefault(name, []).append(plain)
    return {name: sorted(each) if name.endswith(".snapshot") else each for name, each in lines.items()}


def test_both_brokers_return_the_same(written: dict[str, Written]) -> None:
    assert written["barnabas"].responses == written["kafka"].responses
    committed = written["kafka"].responses["committed"]
    assert len({str(aborted) for _, _, aborted, _ in committed}) > 5, "too little was aborted to compare"


@pytest.mark.parametrize("suffix", [".txnindex", ".log", ".snapshot"])
def test_kafkas_tool_prints_the_same_for_the_files_of_both(written: dict[str, Written], suffix: str) -> None:
    files = {name: each.files(suffix) for name, each in written.items()}
    names = {name: [path.name for path in paths if path.stat().st_size] for name, paths in files.items()}
    assert names["barnabas"] == names["kafka"]
    assert len(names["kafka"]) > 2
    lines = {name: dump([path for path in paths if path.stat().st_size]) for name, paths in files.items()}
    assert lines["barnabas"] == lines["kafka"]
    assert "producerId: 9001" in str(lines["kafka"])


def test_transaction_indexes_equal_kafkas_byte_for_byte(written: dict[str, Written]) -> None:
    found = {
        name: {path.name: path.read_bytes() for path in each.files(".txnindex") if path.stat().st_size}
        for name, each in written.items()
    }
    assert found["barnabas"] == found["kafka"]


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_barnabas_continues_kafkas_transactions(
    written: dict[str, Written], end: str, tmp_path: Path
) -> None:
    kafkas = written["kafka"]
    shutil.copytree(getattr(kafkas, end) / "data", tmp_path / "data")
    for path in (tmp_path / "data").glob("*cluster_metadata*"):
        shutil.rmtree(path)
    with running(START["barnabas"](tmp_path)) as wire:
        assert responses(wire) == kafkas.responses
        continues_writing(wire, kafkas.responses)


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_kafka_continues_barnabass_transactions(
    written: dict[str, Written], end: str, tmp_path: Path
) -> None:
    ours = written["barnabas"]
    shutil.copytree(getattr(written["kafka"], end) / "data", tmp_path / "data")
    replica = tmp_path / "data" / f"{TOPIC}-0"
    for path in replica.iterdir():
        if path.name != "partition.metadata":  # the topic is the one that Kafka knows
            path.unlink()
    for path in (getattr(ours, end) / "data" / f"{TOPIC}-0").iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, replica)
    with running(START["kafka"](tmp_path)) as wire:
        assert responses(wire) == ours.responses
        continues_writing(wire, ours.responses)


@contextmanager
def running(broker: Broker) -> Iterator[Wire]:
    """Connect to a broker, which is stopped afterwards."""
    try:
        with connect(broker) as wire:
            yield wire
    finally:
        broker.stop()


def continues_writing(wire: Wire, before: dict[str, Any]) -> None:
    """Check that the open transactions can be ended, and that each sequence is accepted only once."""
    still_open = [(each[0], each[2]) for each in before["producers"] if each[-1] >= 0]
    for producer, sequence in still_open:
        answer = wire.ask(
            transactional_produce_request(TOPIC, transactional(producer, sequence + 2, b"gap")), 9
        )
        code = answer.responses[0].partition_responses[0].error_code
        assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        wire.ask(write_markers_request(marker(producer, TOPIC, commit=False, coordinator_epoch=4)), 1)
    end = before["end"] + len(still_open)
    assert wire.list_offset(TOPIC, -1, isolation_level=1, version=7).offset == end
