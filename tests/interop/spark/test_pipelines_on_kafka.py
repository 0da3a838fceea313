"""Pipelines on Apache Kafka: committed rows once, and dead letters with headers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from deltalake import DeltaTable
from interop.brokers import Broker
from pyspark.sql import SparkSession

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from pyspark_barnabas.pipelines.state import FlowState
from support.confluent_transactions import transact_at
from support.pipelines import Scene

pytestmark = pytest.mark.long

COUNT = 60
FLOWS = """
  to_topic:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING', batch_rows_max: 30}
    to: {topic: TARGET, key: kind}
    dead_letters: DEAD
  to_delta:
    from: {topic: SOURCE, format: json, schema: 'id BIGINT, kind STRING', batch_rows_max: 30}
    to: {delta: table}
    dead_letters: DEAD
"""
ONWARD = """
  onward:
    from: {delta: table}
    to: {topic: TARGET}
"""


class Cluster(NamedTuple):
    """The interface of a broker that a scene needs."""

    bootstrap: str
    client: BlockingClient


@pytest.fixture
def scene(spark: SparkSession, kafka: Broker, tmp_path: Path) -> Iterator[Scene]:
    topics = [f"{tmp_path.name}-{name}".replace("_", "-") for name in ("source", "target", "dead")]
    with BlockingClient(kafka.bootstrap) as client:
        raise_errors(client.admin.create_topics([NewTopic(name, 2) for name in topics]).values())
        yield Scene(spark, Cluster(kafka.bootstrap, client), tmp_path, *topics)


def ids(scene: Scene) -> list[int]:
    return sorted(json.loads(value)["id"] for value, _ in scene.records(scene.target))


def test_each_row_is_written_once_to_a_topic_and_a_table_and_aborted_ones_are_not_read(
    scene: Scene,
) -> None:
    scene.send_ids(0, COUNT)
    scene.send(b"broken", None)
    transact_at(scene.broker.bootstrap, scene.source, f"{scene.source}-t", "aa")
    first = scene.run(FLOWS)
    assert [(each.state, each.error, each.dead_letters) for each in first.values()] == 2 * [
        (FlowState.DONE, None, 2)
    ]
    for name in first:
        scene.remove_last_commit(name)
    scene.send_ids(COUNT, 2 * COUNT)
    assert {each.error for each in scene.run(FLOWS).values()} == {None}
    expected = list(range(2 * COUNT))
    assert ids(scene) == expected
    assert sorted(DeltaTable(scene.home / "table").to_pyarrow_table()["id"].to_pylist()) == expected
    letters = scene.records(scene.dead)
    assert sorted(value for value, _ in letters) == ["", "", "broken", "broken"]
    assert {headers["barnabas.flow"] for _, headers in letters} == {"to_topic", "to_delta"}
    assert {headers["barnabas.topic"] for _, headers in letters} == {scene.source}


def test_rows_appended_to_a_table_are_written_to_a_topic_once(scene: Scene) -> None:
    scene.send_ids(0, COUNT)
    to_delta = "\n  to_delta:" + FLOWS.split("to_delta:")[1]
    for end in (COUNT, 2 * COUNT):
        assert scene.run(to_delta)["to_delta"].error is None
        assert scene.run(ONWARD)["onward"].error is None
        assert ids(scene) == list(range(end))
        scene.remove_last_commit("onward")
        scene.send_ids(COUNT, 2 * COUNT)
