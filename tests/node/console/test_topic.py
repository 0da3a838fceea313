"""The page of a topic: partitions, adding partitions, deletion."""

import re

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.console.pages import topic_groups
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclOperation
from support.acls import allow
from support.consoles import Visitor, visiting
from support.sample_cluster import ORDERS


def test_partitions_have_offsets_and_sizes(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", partitions=2)
    for _ in range(5):
        kafka.produce("t", b"x" * 1000, partition=1)
    with visiting(kafka.bootstrap) as person:
        page = person.get("/topics/t").text
    assert '<td class="number">5</td>' in page
    assert "KiB" in page
    assert 'href="/topics/t/messages?partition=1"' in page


def test_the_page_links_to_groups_acls_and_history(alice: Visitor, admin: Visitor) -> None:
    page = admin.get(f"/topics/{ORDERS}").text
    paths = [f"/topics/{ORDERS}/groups", f"/acls?topic={ORDERS}", f"/history/topic/{ORDERS}"]
    for path in paths:
        assert f'href="{path}"' in page
        assert admin.get(path).status_code == 200
    page = alice.get(
        f"/topics/{ORDERS}"
    ).text  # without DESCRIBE on the cluster the page shows neither ACLs nor audit
    assert [f'href="{path}"' in page for path in paths] == [True, False, False]


def test_groups_that_read_a_topic_are_listed_with_their_lags(admin: Visitor, cluster: EmbeddedBroker) -> None:
    cluster.client.groups.commit_offsets("elsewhere", {TopicPartition("web.clicks", 0): 1})
    cluster.client.groups.commit_offsets(
        "both", {TopicPartition(ORDERS, 0): 10, TopicPartition("web.clicks", 1): 0}
    )
    text = admin.get(f"/topics/{ORDERS}/groups").text
    assert re.findall(r'href="/groups/([^"]+)"', text) == ["billing", "both", "shipping"]
    assert '<td class="number">1 of 6</td><td class="number">40</td>' in text
    assert "No group reads this topic." in admin.get("/topics/web.images/groups").text


def test_groups_of_a_topic_are_checked_in_chunks(
    admin: Visitor, cluster: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_groups, "_GROUPS_MAX", 1)
    found, path = list[str](), f"/topics/{ORDERS}/groups"
    while path:
        text = admin.get(path).text
        found += re.findall(r'href="/groups/([^"]+)"', text)
        link = re.search(r'href="([^"]+)">Check the next groups', text)
        path = link[1] if link else ""
    assert {"billing", "shipping"} <= set(found)
    assert len(found) == len(set(found))


def test_acls_that_match_a_topic_are_listed(admin: Visitor, cluster: EmbeddedBroker) -> None:
    cluster.client.admin.create_acls(
        [allow(AclOperation.READ, name=name) for name in (ORDERS, "web.clicks", "*")]
    )
    text = admin.get(f"/acls?topic={ORDERS}").text
    assert f"ACLs of topic {ORDERS}" in text
    names = set(re.findall(r"topic <strong>([^<]+)</strong>", text))
    assert names == {ORDERS, "*", "shop."}
    assert f'value="{ORDERS}"' in text


def test_a_topic_without_changes_in_the_audit_has_an_empty_history(admin: Visitor) -> None:
    page = admin.get("/history/topic/__consumer_offsets")
    assert page.status_code == 200


@pytest.mark.parametrize("path", ["/topics/", "/groups/", "/groups/lags/", "/acls?topic="])
def test_a_name_that_is_too_long_for_kafka_is_not_found(kafka: EmbeddedBroker, path: str) -> None:
    with visiting(kafka.bootstrap) as person:
        assert person.get(path + "x" * 32_768).status_code == 404


def test_adding_partitions_must_be_confirmed(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", partitions=2)
    with visiting(kafka.bootstrap) as person:
        page = person.submit("/topics/t/grow", total="4")
        assert page.status_code == 400
        assert "Tick this to continue" in page.text
        assert "enter a greater number" in person.submit("/topics/t/grow", total="2", understood="1").text
        assert "not a whole number" in person.submit("/topics/t/grow", total="many", understood="1").text
        page = person.submit("/topics/t/grow", total="4", understood="1")
        assert page.url.path == "/topics/t"
        assert "has 4 partitions now, 2 of them new" in page.text
        assert "4 partitions now" not in person.get("/topics/t").text


def test_deleting_a_topic_requires_typing_its_name(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    with visiting(kafka.bootstrap) as person:
        assert ">t</a>" in person.get("/topics").text
        page = person.submit("/topics/t/delete", typed="T")
        assert page.status_code == 400
        assert "Type the topic&#39;s name" in page.text
        page = person.submit("/topics/t/delete", typed="t")
        assert page.url.path == "/topics"
        assert "Topic t is deleted" in page.text
        assert ">t</a>" not in page.text
        assert person.get("/topics/t").status_code == 404


@pytest.mark.parametrize(
    ("path", "fields"), [("grow", {"total": "9", "understood": "1"}), ("delete", {"typed": "t"})]
)
def test_a_read_only_console_neither_offers_nor_accepts_changes(
    kafka: EmbeddedBroker, path: str, fields: dict[str, str]
) -> None:
    kafka.create_topic("t")
    with visiting(kafka.bootstrap, read_only=True) as person:
        page = person.get("/topics/t")
        assert f"/topics/t/{path}" not in page.text
        assert "Read-only" in page.text
        answer = person.submit(f"/topics/t/{path}", "/", **fields)
        assert answer.status_code == 403
        assert person.get("/topics/t").status_code == 200
        assert person.submit("/theme", "/", theme="dark").status_code == 200
