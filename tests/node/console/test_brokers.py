"""Brokers in the console: configs, log directories, reassignments."""

import re

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor
from support.sample_cluster import ORDERS

EVERY = Resource(ResourceKind.BROKER, "")


def values(cluster: EmbeddedBroker, key: str) -> list[str | None]:
    entries = cluster.client.admin.describe_configs([EVERY])[EVERY]
    assert isinstance(entries, list)
    return [entry.value for entry in entries if entry.name == key]


def test_configs_have_sources_and_can_be_searched(admin: Visitor) -> None:
    found = admin.get("/brokers/1?source=DYNAMIC_DEFAULT_BROKER_CONFIG").text
    assert ("log.cleaner.threads" in found, "advertised.listeners" in found) == (True, False)
    secrets = admin.get("/brokers/1?q=jaas").text
    assert "admin-secret" not in secrets
    assert 'value="1"' in admin.get("/brokers/default?key=log.cleaner.threads").text


def test_a_change_is_previewed_and_can_be_reverted(admin: Visitor, cluster: EmbeddedBroker) -> None:
    change = {"key": "log.retention.ms", "value": "1000000"}
    preview = admin.submit("/brokers/default", **change).text
    assert "<ins>1000000</ins>" in preview
    assert values(cluster, "log.retention.ms") == []
    assert "is set for all brokers." in admin.submit("/brokers/default", **change, confirmed="yes").text
    assert values(cluster, "log.retention.ms") == ["1000000"]
    back = {"key": "log.retention.ms", "way": "delete"}
    assert "<del>1000000</del>" in admin.submit("/brokers/default", **back).text
    admin.submit("/brokers/default", **back, confirmed="yes")
    assert values(cluster, "log.retention.ms") == []


def test_an_error_of_the_broker_is_shown_beside_the_field(admin: Visitor) -> None:
    answer = admin.submit("/brokers/default", key="log.retention.ms", value="long")
    [error] = re.findall(r'id="value-error">(.*?)</p>', answer.text)
    assert (answer.status_code, error.startswith("Invalid value &#39;long&#39; for log.retention.ms")) == (
        400,
        True,
    )
    assert "This field is required" in admin.submit("/brokers/default", key="").text


def test_an_unknown_broker_is_not_found(admin: Visitor) -> None:
    assert [admin.get(f"/brokers/{name}").status_code for name in ("7", "none")] == [404, 404]


@pytest.mark.parametrize("name", ["9" * 5_000, "99999999999", "\u0663"])
def test_an_invalid_broker_id_is_not_found(admin: Visitor, name: str) -> None:
    assert admin.get(f"/brokers/{name}").status_code == 404
    assert "is not one of" in admin.submit("/reassignments", topic=ORDERS, brokers=name).text


def test_invalid_partitions_are_rejected_before_they_are_sent(admin: Visitor) -> None:
    tp = {"topic": ORDERS, "partition": str(2**31)}
    assert admin.submit("/reassignments/cancel", "/reassignments", **tp).status_code == 400
    where = {"node": "0", "directory": "/x"}
    assert admin.submit("/log-dirs/move", "/reassignments", **tp, **where).status_code == 400


def test_a_replica_is_moved_to_another_directory(admin: Visitor, cluster: EmbeddedBroker) -> None:
    tp = TopicPartition("web.images", 0)

    def where() -> list[str]:
        return [each.path for each in cluster.client.admin.describe_log_dirs(1) if tp in each.replicas]

    [here] = where()
    [there] = [each.path for each in cluster.client.admin.describe_log_dirs(1) if each.path != here]
    fields = {"topic": "web.images", "partition": "0", "node": "1", "directory": there}
    moved = admin.submit("/log-dirs/move", "/log-dirs", **fields)
    assert f"web.images-0 of broker 1 is being moved to {there}." in moved.text
    assert there in where()
    assert admin.submit("/log-dirs/move", "/log-dirs", topic="web.images").status_code == 400


def test_a_move_without_effect_is_not_started(admin: Visitor) -> None:
    assert "are already on these brokers" in admin.submit("/reassignments", topic=ORDERS).text
    assert "is not one of 1." in admin.submit("/reassignments", topic=ORDERS, brokers="7").text
    assert "UNKNOWN_TOPIC_OR_PARTITION" in admin.submit("/reassignments", topic="none").text
    cancelled = admin.submit("/reassignments/cancel", "/reassignments", topic=ORDERS, partition="0")
    assert "has no reassignment in progress" in cancelled.text


def test_an_election_keeps_preferred_leaders(admin: Visitor) -> None:
    for topic in (ORDERS, ""):
        page = admin.submit("/reassignments/elect", "/reassignments", topic=topic).text
        assert "No election was needed." in page
