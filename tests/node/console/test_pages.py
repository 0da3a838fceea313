"""Every page of the console, on a sample cluster."""

import pytest

from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor, visiting
from support.sample_cluster import USERS

#: Page -> a word that appears only when the page has its data.
PAGES = {
    "/": "Brokers",
    "/status": "The cluster is healthy.",
    "/brokers": "Broker 1",
    "/brokers/1": "advertised.listeners",
    "/brokers/default": "log.cleaner.threads",
    "/quorum": "metadata.version",
    "/log-dirs": "disk-2",
    "/log-dirs?topic=shop.orders": "Replicas of shop.orders",
    "/reassignments": "No reassignments are in progress.",
    "/topics": "sensors.temperature",
    "/groups": "shipping",
    "/groups/shipping": "packer",
    "/groups/billing": "Preview new offsets",
    "/trash": "shop.returns",
    "/topics/shop.orders/groups": "shipping",
    "/acls?topic=shop.orders": "User:alice",
    "/acls": "User:alice",
    "/users": "carol",
    "/quotas": "every client-id",
    "/audit": "AlterUserScramCredentials",
    "/history/topic/shop.orders": "Differences between",
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_its_data(admin: Visitor, path: str) -> None:
    answer = admin.get(path)
    assert answer.status_code == 200, answer.text
    assert PAGES[path] in answer.text


def test_unauthorized_actions_are_neither_offered_nor_accepted(alice: Visitor) -> None:
    assert 'href="/acls"' not in alice.get("/").text
    for path in ("/acls", "/users", "/log-dirs", "/status"):
        assert alice.get(path).status_code == 403, path
    assert "Show the new offsets" not in alice.get("/groups/billing").text
    assert alice.submit("/groups/delete/billing", "/groups/billing").status_code == 403
    assert "You are not authorized" in alice.get("/groups/shipping").text


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/acls", {"principal": "bob", "operation": "read", "resource_name": "t"}),
        ("/users", {"user": "bob", "password": "bob-secret", "again": "bob-secret"}),
        ("/quotas", {"user": "bob", "key": "producer_byte_rate", "value": "1"}),
        ("/brokers/1", {"key": "log.cleaner.threads", "value": "2", "confirmed": "yes"}),
        ("/groups/reset/billing", {"way": "latest"}),
        ("/reassignments", {"topic": "shop.orders"}),
    ],
)
def test_a_form_without_the_token_of_the_session_changes_nothing(
    admin: Visitor, path: str, fields: dict[str, str]
) -> None:
    assert "The form has expired" in admin.post(path, data=fields).text
    assert admin.post(path, data={"csrf": "guessed", **fields}).status_code == 403


def test_a_read_only_console_neither_offers_nor_accepts_changes(cluster: EmbeddedBroker) -> None:
    with visiting(cluster.bootstrap, read_only=True) as person:
        person.log_in("admin", USERS["admin"])
        for path in PAGES:
            text = person.get(path).text
            assert {action for action in ("primary", "danger") if f'class="{action}' in text} == set(), path
        refused = person.submit("/users", user="bob", password="bob-secret", again="bob-secret")
        assert (refused.status_code, "Read-only" in refused.text) == (403, True)
