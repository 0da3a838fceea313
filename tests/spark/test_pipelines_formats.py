"""Formats of pipelines in real Spark: Avro from topics and to topics, with what does not fit."""

import json
from io import BytesIO

import pytest
from fastavro import schemaless_writer

from pyspark_barnabas.pipelines.planning import pipeline_plan
from pyspark_barnabas.pipelines.state import FlowState
from support.pipelines import Scene

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["SMALL", "LARGE"]}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "items", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
    ],
}
FRAME = b"\0\0\0\0\x07"


def avro(order: dict[str, object]) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, ORDER, order)
    return FRAME + stream.getvalue()


@pytest.fixture
def avro_scene(scene: Scene) -> Scene:
    (scene.home / "order.avsc").write_text(json.dumps(ORDER))
    return scene


FROM_AVRO_TO_AVRO = """
  avro:
    from: {topic: SOURCE, format: avro, schema: order.avsc, framing: confluent, schema_id: 7}
    sql: SELECT id, IF(id = 3, 'HUGE', kind) AS kind, at, items FROM input
    to: {topic: TARGET, format: avro, schema: order.avsc, framing: confluent, schema_id: 7, key: id}
    dead_letters: DEAD
"""


def test_avro_goes_through_once_and_what_does_not_fit_either_way_is_a_dead_letter_with_its_reason(
    avro_scene: Scene,
) -> None:
    good = {"id": 1, "kind": "SMALL", "at": 1_700_000_000_123, "items": {"a": [1.5, 2.5], "b": []}}
    other = {"id": 2, "kind": "LARGE", "at": None, "items": {}}
    cut = avro(good)[:-3]
    avro_scene.send(avro(good), avro(other), avro({**good, "id": 3}), cut, b"", None, b"\0\0\0\0\x08rest")
    done = avro_scene.run(FROM_AVRO_TO_AVRO)["avro"]
    assert (done.state, done.error, done.rows_out, done.dead_letters) == (FlowState.DONE, None, 2, 5)
    avro_scene.forget_last_commit("avro")
    assert avro_scene.run(FROM_AVRO_TO_AVRO)["avro"].state is FlowState.DONE
    written = [value for value, _ in avro_scene.raw_records(avro_scene.target)]
    assert sorted(written) == sorted([avro(good), avro(other)])
    told = {value: headers["barnabas.reason"] for value, headers in avro_scene.raw_records(avro_scene.dead)}
    assert told[cut].startswith("the value is not Avro of shop.Order: it ends too early, after")
    assert told[b"\0\0\0\0\x08rest"] == "the value is not Avro of shop.Order: its schema id is 8, not 7"
    [row] = [value for value in told if value.startswith(b"{")]
    assert json.loads(row)["id"] == 3
    assert told[row] == "the row cannot be Avro of shop.Order: kind is 'HUGE'; it must be SMALL or LARGE"


def test_a_plan_tells_which_columns_are_not_those_of_the_schema(avro_scene: Scene) -> None:
    wrong = FROM_AVRO_TO_AVRO.replace("at, items", "1 AS at, 'x' AS more")
    file = avro_scene.declare(wrong)
    [plan] = pipeline_plan(avro_scene.spark, avro_scene.pipeline)
    assert (plan.error or "").startswith(f"{file}:8: schema: column more is not in the schema, which has id")
    assert "column at is int, the schema wants timestamp; CAST(at AS TIMESTAMP) would be" in plan.error
    assert "column items is missing, which the schema wants as map<string,array<double>>" in plan.error
