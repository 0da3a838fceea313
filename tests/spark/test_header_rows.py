"""Rows of batch headers over both transports, as tasks of `barnabas-batches` return them."""

from typing import Any

import pytest

from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.source.batch_reader import BatchReader
from pyspark_barnabas.source.header_rows import BATCH_TYPES, read_headers
from support.confluent_transactions import transact
from support.source_rows import consumed_rows, fill, produce_damaged, source_options


def header_rows(
    options: dict[str, str], columns: tuple[str, ...] = tuple(BATCH_TYPES)
) -> list[dict[str, Any]]:
    reader = BatchReader(options, columns, read_headers)
    rows = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["partition"], row["baseOffset"]))


@pytest.fixture(params=["fetch", "files"])
def transport(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> dict[str, str]:
    return {"transport": request.param, "logDirs": str(broker.directory)}


def test_batches_cover_every_record_once(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic, 2)
    for codec in ("none", "zstd", "gzip"):
        fill(broker.bootstrap, topic, 100, 2, compression_type=codec)
    rows = header_rows(source_options(broker.bootstrap, topic, minPartitions="9", **transport))
    assert sum(row["recordsCount"] for row in rows) == 300
    assert {row["compression"] for row in rows} == {"none", "zstd", "gzip"}
    assert all(row["crcMatches"] for row in rows)
    for partition in (0, 1):
        of_partition = [row for row in rows if row["partition"] == partition]
        offsets = [(row["baseOffset"], row["lastOffset"] + 1) for row in of_partition]
        assert [first for first, _ in offsets] == [0, *(end for _, end in offsets[:-1])]
        assert offsets[-1][1] == 150
        newest = max(
            row.timestamp for row in consumed_rows(broker.bootstrap, topic) if row.partition == partition
        )
        assert max(row["maxTimestamp"] for row in of_partition).timestamp() == pytest.approx(newest / 1_000)


def test_transactions_and_markers_are_distinguished(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic)
    transact(broker, topic, topic, "cac")
    broker.produce(topic, "plain")
    options = source_options(broker.bootstrap, topic, kafka_isolation_level="read_committed", **transport)
    rows = header_rows(options)
    kinds = [(row["isTransactional"], row["isControl"], row["isAborted"]) for row in rows]
    data, aborted, marker = (True, False, False), (True, False, True), (True, True, False)
    assert kinds == [data, marker, aborted, marker, data, marker, (False, False, False)]
    assert len({row["producerId"] for row in rows[:6]}) == 1
    assert rows[-1]["producerId"] not in (row["producerId"] for row in rows[:6])


def test_read_uncommitted_does_not_know_aborted_transactions(broker: EmbeddedBroker, topic: str) -> None:
    broker.produce(topic, "plain")
    [row] = header_rows(source_options(broker.bootstrap, topic, checkCrcs="false"))
    assert (row["isAborted"], row["crcMatches"]) == (None, None)


def test_damage_is_a_row_and_not_an_error(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    produce_damaged(broker, topic)
    [row] = header_rows(source_options(broker.bootstrap, topic))
    assert not row["crcMatches"]
