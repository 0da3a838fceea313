"""Deleted topics in the console: listed, undeleted, purged."""

import re

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclOperation
from support.acls import allow
from support.consoles import Visitor, visiting

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
}
users = pytest.mark.kafka_users({"root": "root", "alice": "secret"})


def delete(kafka: EmbeddedBroker, name: str = "t", *values: bytes) -> None:
    kafka.create_topic(name, partitions=2)
    for value in values:
        kafka.produce(name, value, partition=1)
    kafka.client.admin.delete_topics([name])


def page_of(person: Visitor, name: str = "t") -> str:
    """Return the path of a deleted topic's page."""
    found = re.search(rf'href="(/trash/[^"]+)">{name}</a>', person.get("/trash").text)
    assert found is not None
    return found[1]


def test_a_deleted_topic_is_listed_with_time_and_principal(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        assert "There are no deleted topics" in person.get("/trash").text
        assert 'href="/trash"' in person.get("/").text
        delete(kafka, "t", b"x" * 2_000)
        delete(kafka, "other")
        text = person.get("/trash").text
        assert re.findall(r'href="/trash/[^"]+">(\w+)</a>', text) == ["other", "t"]
        assert "User:ANONYMOUS" in text
        assert "KiB" in text
        assert "is kept for 1 h." in text
        piece = person.get("/trash?q=OTH", headers={"HX-Request": "true"}).text
        assert re.findall(r'href="/trash/[^"]+">(\w+)</a>', piece) == ["other"]


def test_a_topic_is_undeleted_with_records_and_offsets(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", partitions=2)
    kafka.produce("t", b"kept", partition=1)
    kafka.client.groups.commit_offsets("readers", {TopicPartition("t", 1): 1})
    kafka.client.admin.delete_topics(["t"])
    with visiting(kafka.bootstrap) as person:
        path = page_of(person)
        page = person.submit(f"{path}/undelete", path)
        assert page.url.path == "/topics/t"
        assert "Topic t is undeleted, with 2 partitions and 1 committed offset." in page.text
        assert "kept" in person.get("/topics/t/messages").text
        assert person.get(path).status_code == 404


def test_a_topic_whose_name_is_in_use_is_undeleted_under_another(kafka: EmbeddedBroker) -> None:
    delete(kafka, "t", b"old")
    kafka.create_topic("t")
    with visiting(kafka.bootstrap) as person:
        assert "name in use" in person.get("/trash").text
        path = page_of(person)
        assert "choose another name for the deleted one" in person.get(path).text
        refused = person.submit(f"{path}/undelete", path)
        assert (refused.status_code, "TOPIC_ALREADY_EXISTS" in refused.text) == (400, True)
        page = person.submit(f"{path}/undelete", path, new_name="t.old")
        assert page.url.path == "/topics/t.old"
        assert "old" in person.get("/topics/t.old/messages").text


def test_purging_a_topic_requires_typing_its_name(kafka: EmbeddedBroker) -> None:
    delete(kafka)
    with visiting(kafka.bootstrap) as person:
        path = page_of(person)
        refused = person.submit(f"{path}/purge", path, typed="T")
        assert (refused.status_code, "Type the topic&#39;s name, t, to purge it." in refused.text) == (
            400,
            True,
        )
        page = person.submit(f"{path}/purge", path, typed="t")
        assert page.url.path == "/trash"
        assert re.search(r"Topic t \(.{22}\) is purged\.", page.text)
        assert kafka.client.admin.describe_trash() == []


def test_the_deletion_page_explains_undelete(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    with visiting(kafka.bootstrap) as person:
        text = person.get("/topics/t/delete").text
        assert "is kept for 1 h under" in text
        assert 'href="/trash">Deleted topics' in text
        assert "It can be undeleted" in person.submit("/topics/t/delete", typed="t").text


@pytest.mark.kafka_settings({"barnabas.trash.retention.ms": "0"})
def test_pages_report_that_trash_is_disabled(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    with visiting(kafka.bootstrap) as person:
        assert "cannot be restored" in person.get("/topics/t/delete").text
        assert "Topics are deleted immediately" in person.get("/trash").text
        assert "brought back from" not in person.submit("/topics/t/delete", typed="t").text


@pytest.mark.kafka_settings({"barnabas.trash.retention.bytes": "1048576"})
def test_the_trash_size_limit_is_shown(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        assert "take more than 1.0 MiB" in person.get("/trash").text


@pytest.mark.parametrize(("action", "fields"), [("undelete", {}), ("purge", {"typed": "t"})])
def test_a_read_only_console_shows_deleted_topics_and_changes_nothing(
    kafka: EmbeddedBroker, action: str, fields: dict[str, str]
) -> None:
    delete(kafka)
    with visiting(kafka.bootstrap, read_only=True) as person:
        path = page_of(person)
        assert '<form method="post" action="/trash' not in person.get(path).text
        assert person.submit(f"{path}/{action}", "/", **fields).status_code == 403
    assert len(kafka.client.admin.describe_trash()) == 1


@pytest.mark.parametrize("action", ["undelete", "purge"])
def test_a_form_without_the_token_changes_nothing(kafka: EmbeddedBroker, action: str) -> None:
    delete(kafka)
    with visiting(kafka.bootstrap) as person:
        path = page_of(person)
        assert person.post(f"{path}/{action}", data={"typed": "t"}).status_code == 403
    assert len(kafka.client.admin.describe_trash()) == 1


@users
@pytest.mark.kafka_settings(AUTHORIZER)
def test_the_broker_rejects_unauthorized_changes_of_deleted_topics(kafka: EmbeddedBroker) -> None:
    kafka.client.admin.create_acls([allow(AclOperation.READ, name="seen")])
    delete(kafka, "seen")
    delete(kafka, "secret.topic")
    with visiting(kafka.bootstrap) as person:
        person.log_in("alice", "secret")
        assert "secret.topic" not in person.get("/trash").text
        path = page_of(person, "seen")
        for action, fields in (("undelete", {}), ("purge", {"typed": "seen"})):
            refused = person.submit(f"{path}/{action}", path, **fields)
            assert (refused.status_code, "TOPIC_AUTHORIZATION_FAILED" in refused.text) == (400, True)
        kafka.create_topic("seen")
        kafka.client.admin.create_acls([allow(AclOperation.DELETE, name="seen")])
        assert "</code> of the brokers" in person.get("/topics/seen/delete").text
    assert len(kafka.client.admin.describe_trash()) == 2


def test_an_unknown_deleted_topic_is_not_found(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        assert person.get("/trash/AAAAAAAAAAAAAAAAAAAAAA").status_code == 404
        assert person.get("/trash/..%2F..").status_code == 404
