"""Kafka's DumpLogSegments reads every file that a broker has written."""

import random
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from interop.clients import CODECS, Clients
from interop.reference import tool
from interop.targets import START
from interop.topics import make_topic

RECORD_COUNT = 6_000
KNOWN_FILES = re.compile(
    r"\d{20}\.(log|index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata"
)


@dataclass
class Written:
    """The data directory of a broker that was stopped after it had filled some segments with every codec."""

    data_dir: Path

    def files(self, suffix: str, codec: str = "*") -> list[Path]:
        return sorted(self.data_dir.glob(f"dump-{codec}-0/*{suffix}"))


@pytest.fixture(scope="module")
def written(target: str, tmp_path_factory: pytest.TempPathFactory) -> Written:
    home = tmp_path_factory.mktemp(f"files-{target}")
    broker = START[target](home)
    try:
        clients = Clients(broker.bootstrap, home)
        fill(clients)
        clients.close()
    finally:
        broker.stop()
    return Written(broker.data_dir)


def fill(clients: Clients) -> None:
    seeded = random.Random(7)
    records = [{"key": None, "value": seeded.randbytes(400).hex()} for _ in range(RECORD_COUNT)]
    for codec in CODECS:
        topic = make_topic(clients["confluent-kafka"], f"dump-{codec}", segment_bytes="1048576")
        clients["java"].do("produce", topic=topic, partition=0, records=records, codec=codec, idempotent=True)


def dump(files: list[Path], *options: str) -> str:
    return tool("kafka-dump-log", *options, "--files", ",".join(map(str, files))).stdout


@pytest.mark.parametrize("codec", CODECS)
def test_every_log_segment_is_readable_record_by_record(written: Written, codec: str) -> None:
    segments = written.files(".log", codec)
    assert len(segments) >= 3
    printed = dump(segments, "--deep-iteration")
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
    assert offsets == list(range(RECORD_COUNT))
    batches = [line for line in printed.splitlines() if line.startswith("baseOffset:")]
    assert all(f"compresscodec: {codec}" in line and "isvalid: true" in line for line in batches)
    assert "invalid bytes" not in printed


def test_every_index_is_valid(written: Written) -> None:
    indexes = written.files(".index") + written.files(".timeindex")
    assert len(indexes) >= 2 * 3 * len(CODECS)
    printed = dump(indexes, "--index-sanity-check")
    assert printed.count("passed sanity check") == len(indexes)


def test_every_index_entry_points_to_its_batch(written: Written) -> None:
    indexes = written.files(".index") + written.files(".timeindex")
    printed = dump(indexes, "--verify-index-only").lower()
    assert printed.count("dumping ") == len(indexes)
    assert "mismatch" not in printed
    assert "out of order" not in printed


def test_full_segments_have_index_entries(written: Written) -> None:
    for index in written.files(".index")[:1] + written.files(".timeindex")[:1]:
        assert len(re.findall(r"offset: \d+", dump([index]))) > 10


def test_every_producer_snapshot_has_its_producer(written: Written) -> None:
    snapshots = written.files(".snapshot")
    assert len(snapshots) >= len(CODECS)
    printed = dump(snapshots)
    assert len(re.findall(r"producerId: \d+ producerEpoch: 0", printed)) == len(snapshots)


def test_a_partition_directory_holds_only_kafkas_files(written: Written) -> None:
    for path in written.data_dir.glob("dump-*-0/*"):
        assert KNOWN_FILES.fullmatch(path.name), path
