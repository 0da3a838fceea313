"""`barnabas console` for Apache Kafka, in Chromium: every page, changes, and features that Kafka does not have."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import NamedTuple

import httpx
import pytest
from interop.brokers import Broker
from playwright.sync_api import Browser, expect

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.scram import Upsertion
from barnabas.client.blocking import BlockingClient
from barnabas.wire.scram import ScramMechanism
from interop import candidate, reference, sasl
from support.browsers import SIZE, Watched
from support.consoles import Visitor
from support.process import clean_environment
from support.sample_cluster import ORDERS, PAGES, USERS, filled

SETTINGS = {
    **sasl.SETTINGS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


Visit = Callable[[str], Watched]


class Kafka(NamedTuple):
    """A Kafka, with addresses for clients without login and for users."""

    broker: Broker
    client: BlockingClient
    address: str


class Served(NamedTuple):
    """A console's process."""

    url: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Run a sample cluster with two log directories."""
    home, address = tmp_path_factory.mktemp("kafka"), sasl.free_address()
    settings = {**SETTINGS, "log.dirs": f"{home / 'disk-1'},{home / 'disk-2'}"}
    broker = reference.start(home, settings, listeners=[f"{sasl.LISTENER}://{address}"])
    users = [Upsertion(name, ScramMechanism.SCRAM_SHA_512, password) for name, password in USERS.items()]
    try:
        with BlockingClient(broker.bootstrap) as client:
            raise_errors(client.admin.alter_user_scram_credentials(users).values())
            with filled(client, broker.bootstrap):
                yield Kafka(broker, client, address)
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def server(cluster: Kafka) -> Iterator[Served]:
    command = [candidate.COMMAND, "console", "--bootstrap", cluster.address, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        found = re.search(r"http://[\d.:]+", process.stdout.readline())
        assert found
        yield Served(found[0])
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_every_page_is_correct_and_accessible(admin: Watched) -> None:
    found = {}
    for name, path in PAGES.items():
        page = admin.open(path)
        assert page.locator("h1").count() == 1, name
        found[name] = admin.violations(("light",))  # the colours are those of Barnabas's pages
    assert {name: each for name, each in found.items() if each} == {}


def test_features_that_kafka_does_not_have_are_named(admin: Watched, cluster: Kafka) -> None:
    for path in ("/audit", "/audit?resource=topic/*", f"/history/topic/{ORDERS}"):
        expect(admin.open(path).locator(".empty")).to_contain_text("This cluster has no audit.")
    expect(admin.page.locator(".empty")).to_contain_text(f"no history of topic/{ORDERS}")
    expect(admin.open("/trash").locator(".empty")).to_contain_text("Apache Kafka deletes them immediately")
    delete_page = admin.open(f"/topics/{ORDERS}/delete").locator("main")
    expect(delete_page).to_contain_text("deleted immediately and cannot be restored")
    expect(admin.open("/policies").locator("main")).to_contain_text("rules in a file need Barnabas")
    assert "__barnabas_audit" not in cluster.client.admin.describe_topics()


def test_a_topic_is_created_altered_written_to_and_deleted(admin: Watched) -> None:
    page = admin.open("/new-topic")
    page.get_by_label("Name").fill("shop.refunds")
    page.get_by_label("Partitions").fill("2")
    page.get_by_role("button", name="Create topic").click()
    expect(page.locator("#notices")).to_contain_text("Topic shop.refunds is created.")
    page = admin.open("/topics/shop.refunds/configs/alter?key=retention.ms")
    page.get_by_label("retention.ms", exact=True).fill("86400000")
    page.get_by_role("button", name="Preview change").click()
    expect(page.locator("ins")).to_have_text("86400000")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#notices")).to_contain_text("Changed: retention.ms.")
    expect(page.get_by_role("row", name="Select retention.ms")).to_contain_text("86400000")
    page = admin.open("/topics/shop.refunds/produce")
    page.get_by_label("Key", exact=True).fill("table 3")
    page.get_by_label("Value", exact=True).fill('{"refund": 4}')
    page.get_by_role("button", name="Produce").click()
    expect(page.locator("#notices")).to_contain_text("at offset 0.")
    page.get_by_role("table").locator("summary").first.click()
    expect(page.get_by_role("table")).to_contain_text('"refund": 4')
    assert admin.violations() == []
    page = admin.open("/topics/shop.refunds/delete")
    page.get_by_label("Type the topic's name to confirm").fill("shop.refunds")
    page.get_by_role("button", name="Delete topic").click()
    expect(page.locator("#notices")).to_contain_text("Topic shop.refunds is deleted.")
    expect(page.get_by_role("link", name="shop.refunds")).to_have_count(0)


def test_messages_are_found_by_their_text(admin: Watched) -> None:
    page = admin.open(f"/topics/{ORDERS}/messages?from=beginning&value=coffee")
    rows = page.get_by_role("table").locator("tbody tr")
    assert rows.count() > 0
    assert all("coffee" in each for each in rows.all_inner_texts())


def test_offsets_are_reset_after_a_preview(admin: Watched, cluster: Kafka) -> None:
    page = admin.open("/groups/billing")
    page.get_by_label("Reset to").select_option("shift")
    page.get_by_label("Shift by").fill("7")
    page.get_by_role("button", name="Preview new offsets").click()
    expect(page.get_by_role("table")).to_contain_text("7 records skipped")
    assert admin.violations() == []
    page.get_by_role("button", name="Commit these offsets").click()
    expect(page.locator("#notices")).to_contain_text("Offsets of group billing are reset.")
    committed = cluster.client.groups.offsets("billing")
    assert [committed[tp].offset for tp in sorted(committed)] == [7, 12, 17, 22, 27, 32]


def test_a_plan_is_previewed(admin: Watched) -> None:
    page = admin.open("/plan")
    page.get_by_label("Declared state (YAML)").fill(
        "topics: {shop.orders: {partitions: 2}, web.clicks: {configs: {retention.ms: 1}}}"
    )
    page.get_by_role("button", name="Preview plan").click()
    table = page.get_by_role("table")
    expect(table).to_contain_text("the number of partitions cannot be reduced")
    expect(table).to_contain_text("deletes about 40 records")
    assert admin.violations() == []


def test_a_plain_user_logs_in_with_the_right_password_only(browser: Browser, server: Served) -> None:
    tab = Watched(browser.new_context(viewport=SIZE), server.url)
    tab.expect(400, 401)
    for word in ("wrong", "bob-secret"):
        page = tab.open("/login")
        page.get_by_label("User").fill("bob")
        page.get_by_label("Password").fill(word)
        page.get_by_text("Authentication", exact=True).click()
        page.get_by_label("SASL mechanism").select_option("PLAIN")
        page.get_by_role("button", name="Log in").click()
        if word == "wrong":
            expect(page.locator("main")).to_contain_text("SASL_AUTHENTICATION_FAILED")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_role("link", name="ACLs")).to_have_count(0)
    assert tab.problems == []
    tab.page.context.close()


def test_unauthorized_actions_are_neither_offered_nor_accepted(visit: Visit) -> None:
    alice = visit("alice")
    page = alice.open("/groups/billing")
    expect(page.get_by_role("button", name="Preview new offsets")).to_have_count(0)
    expect(alice.open("/").get_by_role("link", name="Users")).to_have_count(0)
    alice.expect(403)
    expect(alice.open("/users").get_by_role("heading", level=1)).to_have_text("You are not authorized")


def rows(page: httpx.Response) -> str:
    """Return the rows of a page's tables."""
    assert page.status_code == 200, page.text
    bodies = re.findall("<tbody>(.*?)</tbody>", page.text, re.DOTALL)
    return " ".join(re.sub("<[^>]+>", " ", " ".join(bodies)).split())


def test_the_page_after_a_change_shows_it(server: Served) -> None:
    """Brokers apply the controller's changes a moment after the response: many pages are checked."""
    with Visitor(base_url=server.url, follow_redirects=True, timeout=30) as person:
        person.log_in("admin", USERS["admin"])
        for number in range(5):
            name = f"late-{number}"
            assert person.submit("/new-topic", name=name, partitions="1").status_code == 200
            configs = f"/topics/{name}/configs"
            value = {"value:retention.ms": f"{1000 + number}", "was:retention.ms": "604800000"}
            altered = person.submit(f"{configs}/alter", configs, key="retention.ms", confirmed="1", **value)
            assert f" {1000 + number} set for this topic" in rows(altered)
            grown = person.submit(f"/topics/{name}/grow", total="2", understood="1")
            assert rows(grown).startswith("0 1 1 1 healthy 0 0 0 0 B 1 1 1 1 healthy")
            assert name in rows(person.submit("/acls", principal=name, operation="read", resource_name="t"))
            acl = f"topic\tt\tliteral\tUser:{name}\t*\tread\tallow"
            assert name not in rows(person.submit("/acls/remove", "/acls", acl=acl))
            user = {"user": name, "mechanism": "SCRAM-SHA-512"}
            assert name in rows(person.submit("/users", **user, password="long-enough", again="long-enough"))
            assert name not in rows(person.submit("/users/remove", "/users", **user))
            assert name in rows(person.submit("/quotas", user=name, key="producer_byte_rate", value="7"))
            limit = json.dumps([[["user", name]], "producer_byte_rate"])
            assert name not in rows(person.submit("/quotas/remove", "/quotas", limit=limit))
            threads = f"{1 + number % 2}"
            changed = person.submit(
                "/brokers/default", key="log.cleaner.threads", value=threads, confirmed="1"
            )
            assert f"log.cleaner.threads {threads} set for all brokers" in rows(changed)
            assert name not in rows(person.submit(f"/topics/{name}/delete", typed=name))
