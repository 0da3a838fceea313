"""Unauthorized actions are not offered, and the broker rejects them."""

import re

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclOperation
from support.acls import allow
from support.consoles import visiting

USERS = {"root": "root", "alice": "secret"}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
}
pytestmark = [pytest.mark.kafka_users(USERS), pytest.mark.kafka_settings(SETTINGS)]

CHANGES = [
    ("/new-topic", {"name": "mine"}),
    ("/topics/seen/grow", {"total": "2", "understood": "1"}),
    ("/topics/seen/delete", {"typed": "seen"}),
    ("/topics/seen/produce", {"value": "x"}),
]


def test_a_reader_is_offered_read_actions(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("seen")
    kafka.create_topic("secret.topic")
    kafka.produce("seen", b"a value")
    kafka.client.admin.create_acls([allow(AclOperation.READ, name="seen")])
    with visiting(kafka.bootstrap) as person:
        person.log_in("alice", "secret")
        topics = person.get("/topics").text
        assert "/topics/seen" in topics
        assert "secret.topic" not in topics
        assert "/new-topic" not in topics
        assert ">Size<" not in topics
        page = person.get("/topics/seen").text
        for change in ("grow", "delete", "produce"):
            assert f"/topics/seen/{change}" not in page
        assert "a value" in person.get("/topics/seen/messages").text
        assert person.get("/topics/secret.topic").status_code == 403
        assert person.get("/topics/seen/configs").status_code == 403
        assert 'href="/acls"' not in page


@pytest.mark.parametrize(("path", "fields"), CHANGES)
def test_the_broker_rejects_unauthorized_forms(
    kafka: EmbeddedBroker, path: str, fields: dict[str, str]
) -> None:
    kafka.create_topic("seen")
    kafka.client.admin.create_acls([allow(AclOperation.READ, name="seen")])
    with visiting(kafka.bootstrap) as person:
        person.log_in("alice", "secret")
        page = person.submit(path, "/topics", **fields)
        assert page.status_code in (400, 403)
        assert "AUTHORIZATION_FAILED" in page.text
    assert not kafka.records("seen")


def test_a_superuser_is_offered_every_action(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("seen")
    with visiting(kafka.bootstrap) as person:
        person.log_in("root", "root")
        assert "/new-topic" in person.get("/topics").text
        page = person.get("/topics/seen").text
        for change in ("grow", "delete", "produce"):
            assert f"/topics/seen/{change}" in page
        assert 'href="/acls"' in page


def test_a_plan_shows_which_recorded_requests_it_would_refuse(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("seen")
    kafka.client.admin.create_acls([allow(AclOperation.DESCRIBE, name="seen")])
    unchanged = "topics: {seen: {partitions: 1}}"
    replaced = (
        "prune: [acls]\n"
        "acls: [{resource_type: topic, resource_name: other, principal: 'User:alice', operations: [describe]}]"
    )
    with visiting(kafka.bootstrap) as person:
        person.log_in("alice", "secret")
        assert "seen" in person.get("/topics").text
        assert person.get("/topics/other").status_code == 403
        person.post("/logout", data={"csrf": person.token("/topics")})
        person.log_in("root", "root")
        assert "recorded" not in person.submit("/plan", text=unchanged).text
        page = person.submit("/plan", text=replaced).text
    _, refused, allowed = re.split("would be refused</caption>|would be allowed</caption>", page)
    for rows, topic in ((refused, "seen"), (allowed, "other")):
        assert re.search(f"User:alice.*describe.*topic <strong>{topic}</strong>", rows)
    assert "<strong>other" not in refused
