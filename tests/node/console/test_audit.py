"""The audit and the history of resources in the console."""

import re

import pytest

from barnabas.client.admin.admin import raise_errors
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from support.audit import published
from support.consoles import Visitor, visiting
from support.sample_cluster import ORDERS


@pytest.fixture(scope="module")
def audited(admin: Visitor, cluster: EmbeddedBroker) -> Visitor:
    """Return a visitor with all permissions, once all changes are published."""
    published(cluster, f"topic/{ORDERS}", "retention.ms", "172800000")
    return admin


def retention(cluster: EmbeddedBroker) -> str | None:
    topic = Resource(ResourceKind.TOPIC, ORDERS)
    [entry] = cluster.client.admin.describe_configs([topic], ["retention.ms"])[topic]  # type: ignore[misc]
    return entry.value


def revisions(text: str) -> list[str]:
    """Return the revisions that a history offers for a rollback, the newest first."""
    return re.findall(r'aria-label="Roll back to revision (\d+)"', text)


def alter(cluster: EmbeddedBroker, topic: str, key: str, value: str) -> None:
    edit = AlterConfigOp(key, OpType.SET, value)
    raise_errors(cluster.client.admin.alter_configs({Resource(ResourceKind.TOPIC, topic): [edit]}).values())


def digest(text: str) -> str:
    """Return what a preview sends with the confirmation."""
    [found] = re.findall(r'name="changes" value="(\w+)"', text)
    return str(found)


def test_the_newest_changes_come_first_and_are_filtered(audited: Visitor) -> None:
    text = audited.get(f"/audit?resource=topic/{ORDERS}").text
    assert text.index("<ins>172800000") < text.index("<ins>43200000")
    assert "user/carol" not in text
    assert "topic/web.clicks" in audited.get("/audit?resource=topic/web.*").text
    assert "No events match" in audited.get("/audit?principal=alice").text
    assert "No events match" in audited.get("/audit?until=2001-01-01").text
    assert ORDERS in audited.get("/audit?since=1h").text


def test_an_invalid_time_is_reported_beside_its_field(audited: Visitor) -> None:
    answer = audited.get("/audit?since=soon")
    assert (answer.status_code, "is not a time. Examples:" in answer.text) == (400, True)


def test_a_page_follows_the_audit_with_fragments(audited: Visitor) -> None:
    assert 'hx-get="/audit/latest?resource=user%2Fcarol"' in audited.get("/audit?resource=user/carol").text
    piece = audited.get("/audit/latest?resource=user/carol", headers={"HX-Request": "true"}).text
    assert ("user/carol" in piece, "<html" in piece) == (True, False)


@pytest.mark.kafka_settings({"barnabas.audit.enable": "false"})
def test_a_cluster_without_an_audit_is_reported(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        assert "This cluster has no audit." in person.get("/audit").text
        history = person.get("/history/broker/1")
        assert (history.status_code, "it cannot be rolled back" in history.text) == (200, True)
        refused = person.submit("/history/broker/1", "/acls", revision="1", confirmed="yes")
        assert "it cannot be rolled back" in refused.text


def test_secrets_are_in_no_event(audited: Visitor) -> None:
    assert "secret" not in audited.get("/audit?resource=user/carol").text


def test_a_history_compares_the_last_change_or_any_two(audited: Visitor) -> None:
    path = f"/history/topic/{ORDERS}"
    text = audited.get(path).text
    assert ("<del>43200000</del>" in text, "<ins>172800000</ins>" in text) == (True, True)
    first = revisions(text)[-1]
    assert "<del>86400000</del>" in audited.get(f"{path}?from={first}").text
    assert audited.get("/history/topic/none").status_code == 404


def test_a_rollback_is_previewed(audited: Visitor, cluster: EmbeddedBroker) -> None:
    path = f"/history/topic/{ORDERS}"
    back = revisions(audited.get(path).text)[0]
    preview = audited.submit(path, revision=back)
    assert ("What the rollback would change" in preview.text, retention(cluster)) == (True, "172800000")
    done = audited.submit(path, revision=back, confirmed="yes", changes=digest(preview.text))
    assert (f"was rolled back to revision {back}." in done.text, retention(cluster)) == (True, "43200000")
    assert "nothing would change" in audited.submit(path, revision=back).text


def test_a_rollback_that_would_change_something_else_is_shown_again(
    admin: Visitor, cluster: EmbeddedBroker
) -> None:
    topic, path = "rolled.stale", "/history/topic/rolled.stale"
    cluster.create_topic(topic, 1, {"retention.ms": "86400000"})
    alter(cluster, topic, "retention.ms", "172800000")
    published(cluster, f"topic/{topic}", "retention.ms", "172800000")
    back = revisions(admin.get(path).text)[-1]
    preview = admin.submit(path, revision=back)
    alter(cluster, topic, "segment.ms", "3600000")
    again = admin.submit(path, revision=back, confirmed="yes", changes=digest(preview.text))
    assert "nothing was rolled back: review the differences again" in again.text
    assert "segment.ms" in again.text
    assert "172800000" in admin.get(f"/topics/{topic}/configs").text
    done = admin.submit(path, revision=back, confirmed="yes", changes=digest(again.text))
    assert f"was rolled back to revision {back}." in done.text


def test_an_impossible_rollback_is_explained(audited: Visitor) -> None:
    path = f"/history/topic/{ORDERS}"
    assert audited.submit(path, revision="").status_code == 400
    refused = audited.submit(path, revision="999999999")
    assert "Cannot roll back to revision 999999999." in refused.text


def test_a_history_needs_the_permission_of_the_audit(alice: Visitor) -> None:
    assert alice.get(f"/history/topic/{ORDERS}").status_code == 403
    assert alice.get("/audit").status_code == 403
