"""Groups in the console: lags, offset resets, deletion."""

import re
from html import unescape

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor
from support.sample_cluster import ORDERS, PARTITIONS, open_address
from support.waiting import until


def committed(cluster: EmbeddedBroker, name: str) -> list[int]:
    found = cluster.client.groups.offsets(name)
    return [each.offset for _, each in sorted(found.items()) if isinstance(each, OffsetAndMetadata)]


@pytest.fixture
def group(cluster: EmbeddedBroker) -> str:
    """Create a group that has read two records of each partition."""
    cluster.client.groups.commit_offsets(
        "readers", {TopicPartition(ORDERS, index): 2 for index in range(PARTITIONS)}
    )
    return "readers"


def shown(text: str) -> str:
    """Return the offsets that a preview would commit."""
    found = re.search(r'name="offsets" value="([^"]+)"', text)
    assert found is not None, text
    return unescape(found[1])


def test_groups_are_listed_by_state_and_name(admin: Visitor, group: str) -> None:
    assert "readers" in admin.get("/groups?state=Empty").text
    stable = admin.get("/groups?state=Stable").text
    assert ("shipping" in stable, "billing" in stable) == (True, False)
    piece = admin.get("/groups?q=bill", headers={"HX-Request": "true"}).text
    assert ("billing" in piece, "readers" in piece, "<html" in piece) == (True, False, False)


def test_an_unknown_group_is_not_found(admin: Visitor) -> None:
    assert admin.get("/groups/none").status_code == 404


def test_new_offsets_are_previewed(admin: Visitor, cluster: EmbeddedBroker, group: str) -> None:
    preview = admin.submit(f"/groups/reset/{group}", f"/groups/{group}", way="shift", shift="1", topic=ORDERS)
    assert committed(cluster, group) == [2] * PARTITIONS
    done = admin.submit(f"/groups/reset/{group}", f"/groups/{group}", offsets=shown(preview.text))
    assert "Offsets of group readers are reset." in done.text
    assert committed(cluster, group) == [3] * PARTITIONS


def test_invalid_values_are_reported_beside_their_fields(admin: Visitor, group: str) -> None:
    def answer(**fields: str) -> str:
        return admin.submit(f"/groups/reset/{group}", f"/groups/{group}", **fields).text

    assert "Enter an offset." in answer(way="offset")
    assert "&#39;soon&#39; is not a time." in answer(way="time", time="soon")
    assert "Enter a number of records" in answer(way="shift", shift="0")
    assert "no committed offsets here" in answer(way="latest", topic="other")


def test_offsets_of_an_active_group_are_not_reset(admin: Visitor) -> None:
    assert "stop its consumers first" in admin.get("/groups/shipping").text
    refused = admin.submit("/groups/delete/shipping", "/groups/shipping")
    assert (refused.status_code, "Stop its members first" in refused.text) == (409, True)


def test_offsets_of_one_topic_or_the_whole_group_are_deleted(
    admin: Visitor, cluster: EmbeddedBroker, group: str
) -> None:
    admin.submit(f"/groups/forget/{group}", f"/groups/{group}", topic=ORDERS)
    assert committed(cluster, group) == []
    cluster.client.groups.commit_offsets(group, {TopicPartition(ORDERS, 0): 2})
    gone = admin.submit(f"/groups/delete/{group}", f"/groups/{group}")
    assert "Group readers is deleted." in gone.text
    assert admin.get(f"/groups/{group}").status_code == 404


@pytest.mark.parametrize(
    "offsets",
    [
        '[["t", Infinity, 1]]',
        '[["t", 0, 1e99]]',
        f'[["t", 0, {2**63}]]',
        '[["t", -1, 0]]',
        "[" * 9_000,
        r'[["\ud800", 0, 0]]',
    ],
)
def test_invalid_offsets_are_rejected_before_they_are_sent(admin: Visitor, group: str, offsets: str) -> None:
    answer = admin.submit(f"/groups/reset/{group}", f"/groups/{group}", offsets=offsets)
    assert answer.status_code == 400


def test_partitions_without_a_commit_are_shown_and_make_the_total_a_lower_bound(
    admin: Visitor, cluster: EmbeddedBroker
) -> None:
    settings = {
        "bootstrap.servers": open_address(cluster),
        "group.id": "newcomers",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([ORDERS])
        until(lambda: consumer.poll(0.05) or len(consumer.assignment()) == PARTITIONS)
        page = admin.get("/groups/lags/newcomers").text
        assert page.count('<td class="number">unknown</td>') == PARTITIONS
        consumer.commit(offsets=[Position(ORDERS, 0, 10)], asynchronous=False)
        assert "at least 40" in admin.get("/groups/lags/newcomers").text
        assert "at least 40" in admin.get("/groups?q=newcomers").text
    finally:
        consumer.close()


def test_the_page_of_rebalances_shows_who_joined_and_what_was_assigned(
    admin: Visitor, cluster: EmbeddedBroker
) -> None:
    settings = {"bootstrap.servers": open_address(cluster), "group.id": "moved", "client.id": "worker"}
    consumer = Consumer(settings)
    consumer.subscribe([ORDERS])

    def assigned() -> bool:
        consumer.poll(0.05)
        return len(consumer.assignment()) == PARTITIONS

    until(assigned)
    consumer.close()
    assert "/groups/rebalances/moved" in admin.get("/groups/moved").text
    page = admin.get("/groups/rebalances/moved").text
    assert "worker at 127.0.0.1" in page
    assert "<td>joined</td>" in page
    assert "<td>left</td>" in page
    assert f"{ORDERS} 0-{PARTITIONS - 1}" in page
    assert admin.get("/groups/rebalances/none").status_code == 404


def test_a_group_without_rebalances_has_an_empty_page(admin: Visitor, group: str) -> None:
    assert "has not rebalanced since its coordinator started" in admin.get(f"/groups/rebalances/{group}").text
