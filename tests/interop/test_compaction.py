"""Apache Kafka and Barnabas compact the same records to the same batches, and Kafka's tools can read them."""

import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest
from interop.brokers import Broker
from interop.reference import tool
from interop.targets import RUNNING_ONE

from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.wire.records.batch import BatchHeader, read_header
from barnabas.wire.records.columns import read_columns
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, encode_batch
from support.admin import create, new_topic
from support.transactions import BEFORE_IMPLICIT
from support.waiting import until
from support.wire import Wire, produce_request

SETTINGS = {
    "log.cleaner.backoff.ms": "20",
    "auto.create.topics.enable": "false",
    "transaction.partition.verification.enable": "false",
}
#: Segments roll by the timestamps of their records.
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "1.0",
    "file.delete.delay.ms": "0",
}
BEGAN_MS = 1_700_000_000_000
SEGMENTS_COUNT, EVENTS_COUNT, ROUNDS_COUNT = 6, 40, 4


#: A header, and offset, timestamp, key and value of each record.
Batch: TypeAlias = tuple[BatchHeader, list[tuple[int, int, bytes | None, bytes | None]]]


class Cleaned:
    """A topic on one broker, compacted on demand."""

    def __init__(self, broker: Broker, topic: str, configs: dict[str, str]) -> None:
        self.topic = topic
        self.data_dir = broker.data_dir
        self.client = BlockingClient(broker.bootstrap)
        self.wire = Wire(int(broker.bootstrap.rpartition(":")[2]))
        created = create(self.wire, new_topic(topic, 1, 1, configs))[topic]
        assert created.error_code == 0, created

    def close(self) -> None:
        self.wire.close()
        self.client.close()

    def files(self, suffix: str = ".log") -> list[Path]:
        return sorted((self.data_dir / f"{self.topic}-0").glob(f"*{suffix}"))

    def append(self, batch: bytes) -> None:
        """Produce a batch; a transactional one as a producer does after adding the partition."""
        request = produce_request(self.topic, self.wire.topic_id(self.topic), batch)
        is_transactional = read_header(batch).is_transactional
        request.transactional_id = "any" if is_transactional else None
        answer = self.wire.ask(request, BEFORE_IMPLICIT if is_transactional else None)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer

    def end(self, producer_id: int, commit: bool) -> None:
        """Write a transaction's marker, as its coordinator does."""
        topic = WritableTxnMarkerTopic(name=self.topic, partition_indexes=[0])
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_result=commit,
            topics=[topic],
            coordinator_epoch=0,
        )
        answer = self.wire.ask(WriteTxnMarkersRequest(markers=[marker]))
        [partition] = answer.markers[0].topics[0].partitions
        assert partition.error_code == 0, answer

    def _set_ratio(self, ratio: str) -> None:
        edit = AlterConfigOp("min.cleanable.dirty.ratio", OpType.SET, ratio)
        outcomes = self.client.admin.alter_configs({Resource(ResourceKind.TOPIC, self.topic): [edit]})
        assert set(outcomes.values()) == {None}

    def clean(self) -> None:
        """Run the cleaner once."""
        line = f"{self.topic} 0 {int(self.files()[-1].stem)}"
        self._set_ratio("0.0")
        checkpoint = self.data_dir / "cleaner-offset-checkpoint"
        until(lambda: checkpoint.exists() and line in checkpoint.read_text().splitlines())
        self._set_ratio("1.0")

    def content(self) -> list[tuple[str, list[Batch]]]:
        """Return every batch of every segment, except delete horizons, which depend on the cleaner's time."""
        return [(path.stem, _batches(path.read_bytes())) for path in self.files()]

    def aborted(self) -> list[tuple[str, bytes]]:
        """Return every non-empty index of aborted transactions."""
        return [(path.stem, path.read_bytes()) for path in self.files(".txnindex") if path.stat().st_size]


def _batches(data: bytes) -> list[Batch]:
    columns = read_columns(data)
    found: list[Batch] = []
    for batch, header in enumerate(columns.headers):
        rows = range(columns.first_rows[batch], columns.first_rows[batch + 1])
        records = [
            (columns.offsets[row], columns.timestamps_ms[row], columns.key(row), columns.value(row))
            for row in rows
        ]
        found.append((_header(header), records))
    return found


def _header(header: BatchHeader) -> BatchHeader:
    return header._replace(batch_length=0, crc=0, base_timestamp=0)


def _without_marker_times(content: list[tuple[str, list[Batch]]]) -> list[object]:
    """Remove the times of markers, which the broker sets."""
    return [
        (name, header._replace(max_timestamp=0), [record[:1] + record[2:] for record in records])
        if header.is_control
        else (name, header, records)
        for name, batches in content
        for header, records in batches
    ]


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[str, Broker]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(running(SETTINGS)) for name, running in RUNNING_ONE.items()}


def history(seed: int) -> Iterator[list[bytes]]:
    """Generate rounds of batches: repeated keys, tombstones, all codecs, idempotent producers."""
    rng = random.Random(seed)
    sequences = dict.fromkeys((1_000, 1_001), 0)
    now_ms = BEGAN_MS
    for _ in range(ROUNDS_COUNT):
        batches: list[bytes] = []
        for _ in range(SEGMENTS_COUNT):
            now_ms += 2_000
            batches += [_batch(rng, sequences, now_ms) for _ in range(rng.randrange(1, 4))]
        yield batches


def _batch(rng: random.Random, sequences: dict[int, int], now_ms: int) -> bytes:
    producer = rng.choice(list(sequences)) if rng.random() < 0.4 else None
    return _produced(rng, sequences, producer, now_ms)


def _produced(
    rng: random.Random, sequences: dict[int, int], producer: int | None, now_ms: int, **options: bool
) -> bytes:
    records = [
        Record(
            0,
            now_ms + rng.randrange(5),
            b"key %d" % rng.randrange(12),
            None if rng.random() < 0.2 else rng.randbytes(rng.choice((1, 50, 60_000))),
            (("h", b"x"),) if rng.random() < 0.2 else (),
        )
        for _ in range(rng.randrange(1, 6))
    ]
    numbers = {}
    if producer is not None:
        numbers = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
        sequences[producer] += len(records)
    return bytes(encode_batch(records, compression=rng.choice(list(Compression)), **numbers, **options))


def transactions(seed: int) -> Iterator[list[bytes | tuple[int, bool]]]:
    """Generate rounds of batches in and out of transactions, and of their ends: a producer, and whether it commits."""
    rng = random.Random(seed)
    sequences = dict.fromkeys(range(2_000, 2_004), 0)
    ongoing: set[int] = set()
    now_ms = BEGAN_MS
    for _ in range(ROUNDS_COUNT):
        events: list[bytes | tuple[int, bool]] = []
        for _ in range(EVENTS_COUNT):
            now_ms += 2_000
            producer = rng.choice(list(sequences))
            if producer in ongoing and rng.random() < 0.5:
                ongoing.discard(producer)
                events.append((producer, rng.random() < 0.5))
            elif rng.random() < 0.2:
                events.append(_produced(rng, sequences, None, now_ms))
            else:
                ongoing.add(producer)
                events.append(_produced(rng, sequences, producer, now_ms, transactional=True))
        events += [(producer, True) for producer in sorted(ongoing)]
        ongoing.clear()
        yield events


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("retention_ms", [0, 86_400_000])
def test_the_same_records_are_compacted_to_the_same_batches(
    brokers: dict[str, Broker], seed: int, retention_ms: int
) -> None:
    configs = {**CONFIGS, "delete.retention.ms": str(retention_ms)}
    with ExitStack() as stack:
        sides = [Cleaned(broker, f"compacted-{seed}-{retention_ms}", configs) for broker in brokers.values()]
        for side in sides:
            stack.callback(side.close)
        for batches in history(seed):
            for side in sides:
                for batch in batches:
                    side.append(batch)
                side.clean()
            ours, theirs = (side.content() for side in sides)
            assert ours == theirs
        before = sum(len(batches) for batches in history(seed))
        assert sum(len(found) for _, found in ours) < before


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("retention_ms", [0, 86_400_000])
def test_the_same_transactions_are_compacted_to_the_same_batches(
    brokers: dict[str, Broker], seed: int, retention_ms: int
) -> None:
    by_size = {
        "segment.ms": str(2**62),
        "internal.segment.bytes": "400000",
    }  # markers have times of their own
    configs = {**CONFIGS, **by_size, "delete.retention.ms": str(retention_ms)}
    with ExitStack() as stack:
        sides = [
            Cleaned(broker, f"transactions-{seed}-{retention_ms}", configs) for broker in brokers.values()
        ]
        for side in sides:
            stack.callback(side.close)
        for events in transactions(seed):
            for side in sides:
                for event in events:
                    if isinstance(event, bytes):
                        side.append(event)
                    else:
                        side.end(*event)
                side.clean()
            ours, theirs = (side.content() for side in sides)
            assert _without_marker_times(ours) == _without_marker_times(theirs)
            assert sides[0].aborted() == sides[1].aborted()


def test_kafkas_tools_read_a_compacted_log(brokers: dict[str, Broker]) -> None:
    configs = {**CONFIGS, "index.interval.bytes": "0"}
    side = Cleaned(brokers["barnabas"], "dumped", configs)
    try:
        for batches in history(9):
            for batch in batches:
                side.append(batch)
            side.clean()
        logs = side.files()[:-1]
        printed = tool("kafka-dump-log", "--deep-iteration", "--files", ",".join(map(str, logs))).stdout
        offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
        left = [
            record[0] for path in logs for _, records in _batches(path.read_bytes()) for record in records
        ]
        assert offsets == left
        assert "isvalid: false" not in printed
        assert "invalid bytes" not in printed
        assert "deleteHorizonMs: OptionalLong[" in printed
        indexes = [path.with_suffix(suffix) for path in logs for suffix in (".index", ".timeindex")]
        checked = tool(
            "kafka-dump-log", "--index-sanity-check", "--files", ",".join(map(str, indexes))
        ).stdout
        assert checked.count("passed sanity check") == len(indexes)
        verified = tool(
            "kafka-dump-log", "--verify-index-only", "--files", ",".join(map(str, indexes))
        ).stdout
        assert "mismatch" not in verified.lower()
        assert "out of order" not in verified.lower()
    finally:
        side.close()
