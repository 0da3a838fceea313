"""Records of every client are read back unchanged by every other client."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from interop.clients import CODECS, KINDS, Client, ClientError, Clients, kinds_that
from interop.topics import eventually, make_topic

#: Recent, because a broker deletes older records than its retention and rejects future timestamps.
START_MS = (int(time.time()) - 3_600) * 1_000
RECORDS: list[dict[str, Any]] = [
    {"key": "plain", "value": "a value"},
    {"key": None, "value": "without a key"},
    {"key": "tombstone", "value": None},
    {"key": "", "value": ""},
    {"key": "Grüße", "value": "не ASCII ✓"},
    {"key": "headers", "value": "v", "headers": [["one", "1"], ["one", "again"], ["two", "zwei ✓"]]},
    {"key": "compressible", "value": "barnabas " * 2_000},
]
for _index, _record in enumerate(RECORDS):
    _record["timestamp"] = START_MS + 1_000 * _index


def produce(client: Client, topic: str, codec: str = "none", idempotent: bool = False) -> list[int]:
    offsets: list[int] = client.do(
        "produce", topic=topic, partition=0, records=RECORDS, codec=codec, idempotent=idempotent
    )
    return offsets


def content(records: list[dict[str, Any]]) -> list[tuple[str | None, str | None, list[list[str]]]]:
    return [(record["key"], record["value"], record.get("headers") or []) for record in records]


def expected(client: Client, records: list[dict[str, Any]]) -> object:
    """Return the content of ``records`` as far as the client can represent it."""
    if client.kind.distinguishes_empty_from_null:
        return content(records)
    return [(key or None, value or None, headers) for key, value, headers in content(records)]


@pytest.fixture(scope="session")
def written(helper: Client, every_client: Clients, names: Iterator[str]) -> "Written":
    return Written(helper, every_client, names)


class Written:
    """For each client a topic that holds RECORDS once with every codec, produced by that client."""

    def __init__(self, helper: Client, every_client: Clients, names: Iterator[str]) -> None:
        self._helper = helper
        self._every_client = every_client
        self._names = names
        self._topics: dict[str, str] = {}

    def by(self, name: str) -> str:
        if name not in self._topics:
            topic = make_topic(self._helper, next(self._names))
            for codec in CODECS:
                produce(self._every_client[name], topic, codec)
            self._topics[name] = topic
        return self._topics[name]


@pytest.mark.cluster
@pytest.mark.parametrize("client", kinds_that("consume"), indirect=True)
@pytest.mark.parametrize("producer", kinds_that("produce"))
def test_reads_what_any_client_wrote_with_any_codec(client: Client, producer: str, written: Written) -> None:
    count = len(RECORDS) * len(CODECS)
    read = client.do("consume", topic=written.by(producer), partition=0, count=count)
    assert content(read) == expected(client, RECORDS * len(CODECS))
    assert [record["offset"] for record in read] == list(range(count))


@pytest.mark.parametrize("client", kinds_that("produce"), indirect=True)
@pytest.mark.parametrize("codec", CODECS)
def test_produce_returns_the_offsets(client: Client, codec: str, topic: str) -> None:
    assert produce(client, topic, codec) == list(range(len(RECORDS)))
    assert produce(client, topic, codec) == list(range(len(RECORDS), 2 * len(RECORDS)))


@pytest.mark.cluster
@pytest.mark.parametrize("client", kinds_that("produce", "idempotence"), indirect=True)
def test_idempotent_produce_writes_each_record_once(client: Client, topic: str, helper: Client) -> None:
    produce(client, topic, "lz4", idempotent=True)
    produce(client, topic, "none", idempotent=True)
    read = helper.do("consume", topic=topic, partition=0, count=2 * len(RECORDS))
    assert content(read) == content(RECORDS) * 2
    assert helper.do("offsets", topic=topic, partition=0)["latest"] == 2 * len(RECORDS)


@pytest.mark.parametrize("client", [name for name in kinds_that("produce") if name != "kcat"], indirect=True)
def test_the_producers_timestamp_is_stored(client: Client, topic: str, helper: Client) -> None:
    produce(client, topic)
    read = helper.do("consume", topic=topic, partition=0, count=len(RECORDS))
    assert [record["timestamp"] for record in read] == [record["timestamp"] for record in RECORDS]


@pytest.mark.parametrize("client", kinds_that("consume"), indirect=True)
def test_reads_from_a_timestamp(client: Client, topic: str, helper: Client) -> None:
    produce(helper, topic, "zstd")
    read = client.do("consume", topic=topic, partition=0, count=3, timestamp=START_MS + 2_500)
    assert content(read) == expected(client, RECORDS[3:6])
    assert [record["offset"] for record in read] == [3, 4, 5]


@pytest.mark.parametrize("client", kinds_that("offsets"), indirect=True)
def test_lists_the_earliest_and_the_latest_offset(client: Client, topic: str, helper: Client) -> None:
    assert client.do("offsets", topic=topic, partition=0) == {"earliest": 0, "latest": 0}
    produce(helper, topic)
    assert client.do("offsets", topic=topic, partition=0) == {"earliest": 0, "latest": len(RECORDS)}


@pytest.mark.parametrize("client", kinds_that("offset_at"), indirect=True)
@pytest.mark.parametrize(
    ("after_ms", "offset"), [(-5_000, 0), (0, 0), (1, 1), (1_000, 1), (5_999, 6), (6_000, 6), (6_001, None)]
)
def test_lists_the_offset_of_a_timestamp(
    client: Client, after_ms: int, offset: int | None, helper: Client, timed_topic: str
) -> None:
    found = client.do("offset_at", topic=timed_topic, partition=0, timestamp=START_MS + after_ms)
    assert found == offset


@pytest.fixture(scope="session")
def timed_topic(helper: Client, names: Iterator[str]) -> str:
    topic = make_topic(helper, next(names))
    produce(helper, topic, "gzip")
    return topic


@pytest.mark.parametrize("client", kinds_that("produce"), indirect=True)
def test_a_message_that_is_too_large_is_rejected(client: Client, helper: Client, absent: str) -> None:
    topic = make_topic(helper, absent, max_message_bytes="1000")
    with pytest.raises(ClientError) as refused:
        produce(client, topic)
    assert refused.value.name == client.kind.errors["message too large"]


@pytest.mark.parametrize(
    "client", [kind.name for kind in KINDS.values() if kind.creates_topics_by_producing], indirect=True
)
def test_a_producer_creates_its_topic(client: Client, absent: str, helper: Client) -> None:
    produce(client, absent)
    eventually(lambda: absent in helper.do("metadata")["topics"])
    read = helper.do("consume", topic=absent, partition=0, count=len(RECORDS))
    assert content(read) == content(RECORDS)


@pytest.mark.parametrize(
    "client", [kind.name for kind in KINDS.values() if not kind.creates_topics_by_producing], indirect=True
)
def test_a_producer_without_topic_creation_gets_unknown_topic(client: Client, absent: str) -> None:
    with pytest.raises(ClientError) as refused:
        produce(client, absent)
    assert refused.value.name == client.kind.errors["unknown topic"]
