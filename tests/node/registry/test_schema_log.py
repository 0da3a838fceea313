"""The topic of schemas: several registries, restarts, and records of Confluent's registry."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.server.transaction_markers import TransactionMarkers
from barnabas.testing import EmbeddedBroker
from barnabas.wire.isolation import Isolation
from support.registries import RestClient, avro_record, running_registry
from support.waiting import until

TOPIC = "_schemas"
THREADS = 4


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def records_of(broker: EmbeddedBroker) -> list[tuple[str, str | None]]:
    """Return keys and values of all committed records."""
    with BlockingClient(broker.bootstrap) as client:
        starts = {TopicPartition(TOPIC, 0): EARLIEST}
        consumer = client.consumer(starts, stop_at_end=True, isolation=Isolation.READ_COMMITTED)
        return [
            ((record.key or b"").decode(), None if record.value is None else record.value.decode())
            for record in consumer
        ]


def write(broker: EmbeddedBroker, *records: tuple[str, str | None]) -> None:
    with BlockingClient(broker.bootstrap) as client, client.producer() as producer:
        for key, value in records:
            producer.send_and_wait(TOPIC, None if value is None else value.encode(), key.encode())


def set_policy(client: BlockingClient, policy: str) -> None:
    resource = Resource(ResourceKind.TOPIC, TOPIC)
    edit = AlterConfigOp("cleanup.policy", OpType.SET, policy)
    assert client.admin.alter_configs({resource: [edit]}) == {resource: None}


def test_records_have_the_format_of_confluent(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        text = avro_record("A", "a")
        rest.register("s", text)
        rest.put("/config", {"compatibility": "FULL"})
        rest.put("/config/s", {"compatibility": "NONE"})
        rest.put("/mode", {"mode": "READWRITE"})
        rest.register("s", '"string"')
        rest.delete("/subjects/s/versions/1")
        rest.delete("/subjects/s/versions/1?permanent=true")
        rest.delete("/subjects/s")
    quoted = json.dumps(text)
    assert records_of(broker) == [
        (
            '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            f'{{"subject":"s","version":1,"id":1,"schema":{quoted},"deleted":false}}',
        ),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
        ('{"keytype":"CONFIG","subject":"s","magic":0}', '{"compatibilityLevel":"NONE"}'),
        ('{"keytype":"MODE","subject":null,"magic":0}', '{"mode":"READWRITE"}'),
        (
            '{"keytype":"SCHEMA","subject":"s","version":2,"magic":1}',
            '{"subject":"s","version":2,"id":2,"schema":"\\"string\\"","deleted":false}',
        ),
        (
            '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            f'{{"subject":"s","version":1,"id":1,"schema":{quoted},"deleted":true}}',
        ),
        ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None),
        ('{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"subject":"s","version":2}'),
        ('{"keytype":"CONFIG","subject":"s","magic":0}', None),
    ]


def test_the_topic_is_compacted_and_has_one_partition(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        assert RestClient(server.url).get("/subjects") == []
    resource = Resource(ResourceKind.TOPIC, TOPIC)
    with BlockingClient(broker.bootstrap) as client:
        assert len(client.admin.describe_topics([TOPIC])[TOPIC].partitions) == 1
        (policy,) = client.admin.describe_configs([resource], {"cleanup.policy"})[resource]
    assert policy.value == "compact"


def test_a_registry_continues_with_the_records_of_confluent(broker: EmbeddedBroker) -> None:
    broker.create_topic(TOPIC, configs={"cleanup.policy": "compact"})
    item = '{"type":"record","name":"Item","fields":[]}'
    write(
        broker,
        ('{"keytype":"NOOP","magic":0}', None),
        (
            '{"keytype":"SCHEMA","subject":"item","version":1,"magic":1}',
            json.dumps(
                {"subject": "item", "version": 1, "id": 10, "md5": "x", "schema": item, "deleted": False}
            ),
        ),
        (
            '{"keytype":"SCHEMA","subject":"order","version":1,"magic":1}',
            json.dumps(
                {
                    "subject": "order",
                    "version": 1,
                    "id": 11,
                    "schemaType": "AVRO",
                    "references": [{"name": "Item", "subject": "item", "version": 1}],
                    "schema": '{"type":"array","items":"Item"}',
                    "deleted": False,
                    "guid": "b1b1",
                    "ts": 1,
                }
            ),
        ),
        (
            '{"keytype":"SCHEMA","subject":"gone","version":1,"magic":1}',
            '{"subject":"gone","version":1,"id":12,"schema":"\\"int\\"","deleted":false}',
        ),
        ('{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}', '{"subject":"gone","version":1}'),
        ('{"keytype":"CONFIG","subject":"item","magic":0}', '{"compatibilityLevel":"FORWARD"}'),
        ('{"keytype":"CONTEXT","tenant":"default","context":".","magic":0}', "{}"),
        ("not JSON", "at all"),
        ('{"keytype":"SCHEMA","subject":7,"version":1,"magic":1}', "{}"),
        ('{"keytype":"CONFIG","subject":"item","magic":0}', "[" * 100_000),
    )
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        assert rest.get("/subjects") == ["item", "order"]
        assert rest.get("/subjects?deleted=true") == ["gone", "item", "order"]
        assert rest.get("/config/item") == {"compatibilityLevel": "FORWARD"}
        assert rest.get("/schemas/ids/12") == {"schema": '"int"'}
        assert rest.get("/subjects/item/versions/1/referencedby") == [11]
        assert rest.register("next", '"long"') == {"id": 13}
        rest.delete("/subjects/order/versions/1")
    assert '"guid":"b1b1"' in (records_of(broker)[-1][1] or "")


def test_a_restarted_registry_knows_everything(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        ids = [rest.register(f"s-{number}", avro_record(f"R{number}", "a"))["id"] for number in range(5)]
        rest.put("/config/s-1", {"compatibility": "FULL"})
        rest.delete("/subjects/s-0")
    broker.restart(kill=True)
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        assert rest.get("/subjects") == [f"s-{number}" for number in range(1, 5)]
        assert rest.get("/config/s-1") == {"compatibilityLevel": "FULL"}
        assert [rest.get(f"/schemas/ids/{each}")["schema"] for each in ids] == [
            avro_record(f"R{number}", "a") for number in range(5)
        ]
        assert rest.register("s-5", avro_record("R5", "a"))["id"] == max(ids) + 1


def test_what_one_registry_writes_another_finds_at_once(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as one, running_registry(broker.bootstrap) as other:
        first, second = RestClient(one.url), RestClient(other.url)
        schema_id = first.register("s", avro_record("R", "a"))["id"]
        assert second.get(f"/schemas/ids/{schema_id}")["schema"] == avro_record("R", "a")
        assert second.register("s", avro_record("R", "a", "b"))["error_code"] == 409
        assert second.register("s", avro_record("R", "a", "b?"))["id"] == schema_id + 1
        assert first.get("/subjects/s/versions/2")["version"] == 2


def test_registries_that_write_at_once_never_share_an_id_or_a_version(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as one, running_registry(broker.bootstrap) as other:
        urls = [one.url, other.url] * (THREADS // 2)

        def register_all(thread: int) -> list[int]:
            rest = RestClient(urls[thread])
            schemas = [avro_record("R", f"f{thread}n{number}?") for number in range(8)]
            return [rest.register("shared", schema)["id"] for schema in schemas]

        with ThreadPoolExecutor(THREADS) as pool:
            ids = [each for found in pool.map(register_all, range(THREADS)) for each in found]
        assert sorted(ids) == list(range(1, 8 * THREADS + 1))
        assert RestClient(one.url).get("/subjects/shared/versions") == sorted(ids)
        same = [RestClient(url).get("/schemas") for url in (one.url, other.url)]
        assert same[0] == same[1]
    keys = [key for key, _ in records_of(broker)]
    assert len(set(keys)) == len(keys) == 8 * THREADS


def test_the_same_schema_registered_by_all_at_once_has_one_id(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as one, running_registry(broker.bootstrap) as other:
        urls = [one.url, other.url] * THREADS

        def register(number: int) -> int:
            schema_id: int = RestClient(urls[number]).register("same", avro_record("R", "a"))["id"]
            return schema_id

        with ThreadPoolExecutor(len(urls)) as pool:
            assert set(pool.map(register, range(len(urls)))) == {1}
    assert len(records_of(broker)) == 1


def test_a_write_survives_a_restart_of_the_broker(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        assert rest.register("s", avro_record("R", "a")) == {"id": 1}
        broker.restart(kill=True)
        assert rest.register("s", avro_record("R", "a", "b?")) == {"id": 2}


def test_a_topic_with_more_partitions_is_refused(broker: EmbeddedBroker) -> None:
    with BlockingClient(broker.bootstrap) as client:
        client.admin.create_topics([NewTopic("several", 2)])
    with running_registry(broker.bootstrap, topic="several", start_timeout_ms=200) as server:
        response = RestClient(server.url).get("/subjects")
    assert response["error_code"] == 50001
    assert "must have one partition" in response["message"]


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_is_not_compacted_is_refused(broker: EmbeddedBroker, policy: str) -> None:
    broker.create_topic(TOPIC, configs={"cleanup.policy": policy})
    with running_registry(broker.bootstrap, start_timeout_ms=200) as server:
        rest = RestClient(server.url)
        response = rest.get("/subjects")
        assert response["error_code"] == 50001
        assert "barnabas configs set topic _schemas cleanup.policy=compact" in response["message"]
        with BlockingClient(broker.bootstrap) as client:
            set_policy(client, "compact")
        until(lambda: rest.get("/subjects") == [])


def test_a_topic_whose_first_records_are_deleted_is_read(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        for number in range(3):
            rest.register(f"s-{number}", f'{{"type":"int","n":{number}}}')
        with BlockingClient(broker.bootstrap) as client:
            set_policy(client, "delete")
            first = TopicPartition(TOPIC, 0)
            assert client.admin.delete_records({first: 3}) == {first: 3}, "each has a commit marker behind it"
            set_policy(client, "compact")
    with running_registry(broker.bootstrap, start_timeout_ms=10_000) as server:
        rest = RestClient(server.url)
        assert rest.get("/subjects") == ["s-2"]
        assert rest.register("s-3", '"string"')["id"] == 4


def test_a_schema_larger_than_the_topic_allows_is_refused(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        schema = f'{{"type":"record","name":"R","doc":"{"x" * 2_000_000}","fields":[]}}'
        assert rest.register("large", schema)["error_code"] == 42209
        assert rest.register("small", avro_record("R", "a")) == {"id": 1}


def test_a_fenced_write_is_decided_again_and_leaves_no_record(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        rest.register("s", avro_record("R", "a"))
        fault = broker.fail_next("EndTxn", "INVALID_PRODUCER_EPOCH")
        assert rest.register("s", avro_record("R", "a", "b?")) == {"id": 2}
        assert fault.struck_count == 1
        assert rest.get("/subjects/s/versions") == [1, 2]
    assert len(records_of(broker)) == 2


@pytest.mark.parametrize("api", ["EndTxn", "Produce", "AddPartitionsToTxn", "InitProducerId"])
@pytest.mark.parametrize("handled", [True, False])
def test_a_lost_response_neither_loses_nor_repeats_a_write(
    broker: EmbeddedBroker, api: str, handled: bool
) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        assert rest.get("/subjects") == []
        broker.drop_next(api, handled=handled)
        assert rest.register("s", avro_record("R", "a")) == {"id": 1}
        assert rest.register("s", avro_record("R", "a", "b?")) == {"id": 2}
    assert [json.loads(key)["version"] for key, _ in records_of(broker)] == [1, 2]


def test_ids_count_up_while_commit_markers_are_late(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader of the topic may be another broker than the coordinator, which sends it the marker."""
    write_here = TransactionMarkers._write_here

    async def write_late(*arguments: Any, **further: Any) -> Any:
        await asyncio.sleep(0.2)
        return await write_here(*arguments, **further)

    monkeypatch.setattr(TransactionMarkers, "_write_here", write_late)
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        schemas = [avro_record(f"R{number}", "a") for number in range(3)]
        assert [rest.register(f"s-{number}", schema)["id"] for number, schema in enumerate(schemas)] == [
            1,
            2,
            3,
        ]
        assert [rest.get(f"/schemas/ids/{number}").get("schema") for number in (1, 2, 3)] == schemas


def test_a_topic_that_is_created_again_is_read_again(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        rest.register("s", avro_record("R", "a"))
        with BlockingClient(broker.bootstrap) as client:
            client.admin.delete_topics([TOPIC])
            client.admin.create_topics([NewTopic(TOPIC, 1, configs={"cleanup.policy": "compact"})])
        until(lambda: rest.get("/subjects") == [])
        assert rest.register("t", avro_record("R", "a")) == {"id": 1}


def test_a_compacted_topic_has_the_same_schemas() -> None:
    """Many changes of one level fill segments, so that all others are compacted."""
    configs = {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "2000",
        "min.cleanable.dirty.ratio": "0.01",
    }
    with EmbeddedBroker({"log.cleaner.backoff.ms": "5"}) as broker:
        broker.create_topic(TOPIC, partitions=1, configs=configs)
        with running_registry(broker.bootstrap) as server:
            rest = RestClient(server.url)
            for number in range(5):
                rest.register("s", avro_record("R", *(f"f{each}?" for each in range(number))))
                rest.register(f"t-{number}", avro_record("R", "a"))
            rest.delete("/subjects/t-1")
            rest.delete("/subjects/t-1?permanent=true")
            rest.delete("/subjects/t-2")
            rest.delete("/subjects/s/versions/1")
            for number in range(30):
                rest.put("/config/s", {"compatibility": ("FULL", "NONE")[number % 2]})
            keys = [f"/schemas?deleted={deleted}" for deleted in ("true", "false")]
            before = [rest.get(path) for path in (*keys, "/subjects?deleted=true", "/config/s")]
        until(lambda: len(records_of(broker)) < 25)
        with running_registry(broker.bootstrap) as server:
            rest = RestClient(server.url)
            assert [rest.get(path) for path in (*keys, "/subjects?deleted=true", "/config/s")] == before
            assert rest.register("u", avro_record("U", "a"))["id"] == 7
