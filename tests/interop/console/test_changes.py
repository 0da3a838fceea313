"""Work in the console with Chromium: creating, altering, errors, rolling back, browsing messages."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from barnabas.testing import EmbeddedBroker
from support.audit import published
from support.browsers import Watched
from support.sample_cluster import DELETED, ORDERS

Visit = Callable[[str], Watched]


def test_a_topic_is_created_and_found(admin: Watched, cluster: EmbeddedBroker) -> None:
    page = admin.open("/new-topic")
    page.get_by_label("Name").fill("shop.refunds")
    page.get_by_label("Partitions").fill("3")
    page.get_by_role("button", name="Create topic").click()
    expect(page.get_by_role("status").or_(page.locator(".notice.good"))).to_contain_text("shop.refunds")
    assert cluster.topics()["shop.refunds"] == 3
    page = admin.open("/topics")
    page.get_by_role("searchbox").press_sequentially("refu")
    expect(page.get_by_role("link", name="shop.refunds")).to_be_visible()
    expect(page.get_by_role("link", name="web.clicks")).to_have_count(0)
    assert "q=refu" in page.url


def test_a_policy_violation_has_the_policys_message(admin: Watched, cluster: EmbeddedBroker) -> None:
    admin.expect(400, 409)
    page = admin.open("/new-topic")
    page.get_by_label("Name").fill("Everything")
    page.get_by_role("button", name="Create topic").click()
    expect(page.locator("main")).to_contain_text("see the platform handbook")
    assert admin.violations() == []
    admin.keep("policy-refuses")
    assert "Everything" not in cluster.topics()


def test_messages_are_browsed(admin: Watched) -> None:
    page = admin.open(f"/topics/{ORDERS}/messages")
    first = page.get_by_role("table").locator("summary").first
    first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("table")).to_contain_text('"item"')
    assert admin.violations() == []
    admin.keep("message")


def test_a_search_continues_where_it_stopped(admin: Watched) -> None:
    page = admin.open(f"/topics/{ORDERS}/messages")
    page.get_by_label("Value contains").fill("COFFEE")
    page.get_by_label("Records per page").select_option("25")
    page.get_by_role("button", name="Show").click()
    progress = page.get_by_role("region", name="Search progress")
    expect(progress).to_contain_text("25 records found on this page")
    expect(progress).to_contain_text("ignoring case")
    progress.locator("summary").click()
    assert admin.violations() == []
    admin.keep("search-progress", whole=True)
    progress.get_by_role("link", name="Continue searching").click()
    expect(page.get_by_label("Value contains")).to_have_value("COFFEE")
    expect(progress).to_contain_text("of 300 offsets")
    page.get_by_label("Match case").check()
    page.get_by_role("button", name="Show").click()
    expect(progress).to_contain_text("0 records found on this page. Searched 300 of 300 offsets")


def test_a_deleted_topic_is_undeleted_and_another_purged(admin: Watched, cluster: EmbeddedBroker) -> None:
    page = admin.open("/trash")
    page.get_by_role("searchbox").press_sequentially("RETURNS")
    page.get_by_role("link", name=DELETED).click()
    assert admin.violations() == []
    admin.keep("deleted-topic")
    page.get_by_role("button", name="Undelete topic").click()
    expect(page.locator("#notices")).to_contain_text(f"Topic {DELETED} is undeleted, with 3 partitions.")
    assert cluster.topics()[DELETED] == 3
    page = admin.open(f"/topics/{DELETED}/delete")
    page.get_by_label("Type the topic's name to confirm").fill(DELETED)
    page.get_by_role("button", name="Delete topic").click()
    expect(page.locator("#notices")).to_contain_text("It can be undeleted")
    page = admin.open("/trash")
    page.get_by_role("link", name=DELETED).click()
    page.get_by_label("Type the topic's name to confirm").fill(DELETED)
    page.get_by_role("button", name="Purge topic").click()
    expect(page.locator("#notices")).to_contain_text("is purged")
    expect(page.get_by_role("link", name=DELETED)).to_have_count(0)


def test_offsets_are_reset_after_a_preview(admin: Watched, cluster: EmbeddedBroker) -> None:
    page = admin.open("/groups")
    page.get_by_role("link", name="billing").click()
    page.get_by_label("Reset to").select_option("shift")
    page.get_by_label("Shift by").fill("7")
    page.get_by_role("button", name="Preview new offsets").click()
    expect(page.get_by_role("table")).to_contain_text("7 records skipped")
    assert admin.violations() == []
    admin.keep("offsets-preview")
    page.get_by_role("button", name="Commit these offsets").click()
    expect(page.locator("#notices")).to_contain_text("Offsets of group billing are reset.")
    expect(page.locator(".plot svg")).to_be_visible()  # the second sample has arrived
    admin.keep("lag", "light")


def test_a_config_is_altered_and_rolled_back(admin: Watched, cluster: EmbeddedBroker) -> None:
    page = admin.open("/brokers/default?key=log.cleaner.threads#change")
    page.get_by_label("Value", exact=True).fill("2")
    page.get_by_role("button", name="Preview change").click()
    expect(page.locator("ins")).to_have_text("2")
    assert admin.violations() == []
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#notices")).to_contain_text("log.cleaner.threads is set for all brokers.")
    published(cluster, "broker/", "log.cleaner.threads", "2")
    page = admin.open("/audit")
    page.get_by_role("link", name="broker/").first.click()
    page.get_by_role("button", name=re.compile("Roll back to revision")).first.click()
    expect(page.get_by_role("table", name="What the rollback would change")).to_contain_text(
        "log.cleaner.threads"
    )
    assert admin.violations() == []
    admin.keep("rollback")
    page.get_by_role("button", name="Roll back", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("was rolled back to revision")
    published(cluster, "broker/", "log.cleaner.threads", "1")


def test_an_acl_is_created_and_removed(admin: Watched) -> None:
    page = admin.open("/acls")
    page.get_by_label("Principal", exact=True).fill("zoe")
    page.get_by_role("checkbox", name="read", exact=True).check()
    page.get_by_label("Name", exact=True).fill("shop.orders")
    page.get_by_role("button", name="Create ACLs").click()
    expect(page.locator("#notices")).to_contain_text("1 ACL created for User:zoe.")
    page.get_by_role("checkbox", name=re.compile("User:zoe, read")).check()
    page.get_by_role("button", name="Delete selected ACLs").click()
    expect(page.locator("#notices")).to_contain_text("1 ACL deleted.")


def test_the_audit_page_follows_new_events(admin: Watched, cluster: EmbeddedBroker) -> None:
    page = admin.open("/audit?resource=topic/shop.followed")
    expect(page.locator("#audit")).to_contain_text("No events match")
    cluster.create_topic("shop.followed")
    expect(page.locator("#audit")).to_contain_text("CreateTopics")


def test_unauthorized_actions_are_not_offered(visit: Visit) -> None:
    alice = visit("alice")
    page = alice.open("/")
    expect(page.get_by_role("link", name="ACLs")).to_have_count(0)
    expect(page.get_by_role("link", name="Users")).to_have_count(0)
    page = alice.open("/groups/billing")
    expect(page.get_by_role("button", name="Preview new offsets")).to_have_count(0)
    alice.expect(403)
    page = alice.open("/users")
    expect(page.get_by_role("heading", level=1)).to_have_text("You are not authorized")
    assert alice.violations() == []


def test_a_user_logs_out(admin: Watched) -> None:
    page = admin.open("/")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert admin.violations() == []
    admin.keep("login")
    admin.open("/groups")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
