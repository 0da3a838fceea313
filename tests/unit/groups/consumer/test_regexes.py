"""Subscriptions by regular expression: matching topics, refresh, and errors."""

from dataclasses import replace

import pytest

from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.consumer.regex import check_regex, matching
from barnabas.wire.errors import ErrorCode, KafkaError
from support.consumer_groups import ConsumerMember, group_of, join_request
from support.group_worlds import GroupWorld


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld(group_consumer_assignment_interval_ms="0")
    for name in ("orders", "orders-eu", "bills"):
        world.create_topic(name, 1)
    return world


def subscriber(world: GroupWorld, member_id: str, pattern: str) -> ConsumerMember:
    return ConsumerMember(world, member_id, subscribed_topic_regex=pattern)


def names(member: ConsumerMember) -> set[str]:
    return set(member.owned)


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("(?i)ORDERS", {"orders"}),
        (r"\w+", {"orders", "bills"}),
        ("rder", set()),
        (".*|", {"orders", "orders-eu", "bills"}),
    ],
)
def test_a_regex_must_match_the_whole_name(pattern: str, matched: set[str]) -> None:
    assert matching(pattern, ("orders", "orders-eu", "bills")) == matched


def test_created_and_deleted_topics_change_the_matches() -> None:
    kept = {"orders", "orders-eu", "bills"}
    pattern = "orders.*|(once)"
    assert matching(pattern, kept) == {"orders", "orders-eu"}
    assert matching(pattern, kept) is matching(pattern, kept)
    assert matching(pattern, {"orders-us", "orders", "bills"}) == {"orders-us", "orders"}


@pytest.mark.parametrize("pattern", ["(a", "[", "*", "(?=a)", r"(a)\1", "a{1001}"])
def test_an_invalid_re2_regex_is_rejected_with_the_reason(pattern: str) -> None:
    with pytest.raises(KafkaError, match="is not a valid regular expression") as refused:
        check_regex(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_regex_with_catastrophic_backtracking_takes_no_time() -> None:
    assert matching("(a*)*(a*)*(a*)*b", ["a" * 249]) == frozenset()


def test_a_subscriber_gets_the_topics_that_match_its_regex(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join()
    assert names(m1) == {"orders", "orders-eu"}
    assert group_of(world).is_subscribed_to("orders-eu")
    assert not group_of(world).is_subscribed_to("bills")


def test_names_and_a_regex_may_be_combined(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join("bills")
    assert names(m1) == {"orders", "orders-eu", "bills"}


def test_later_topics_are_found_with_a_limited_refresh_rate(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join()
    world.create_topic("orders-us", 1)
    m1.beat()
    assert "orders-us" not in names(m1)
    world.pass_time(10_000)
    m1.beat()
    assert "orders-us" in names(m1)
    world.pass_time(10_000)
    m1.beat()
    assert world.last.records == []


def test_later_topics_are_found_although_the_last_refresh_is_of_the_future(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join()
    world.create_topic("orders-us", 1)
    world.now_ms -= 3_600_000  # another broker coordinates the group, whose clock is behind
    m1.beat()
    assert "orders-us" in names(m1)


def test_regexes_are_refreshed_periodically(world: GroupWorld) -> None:
    seen = {"orders"}
    caller = Caller("c", "/h", 1, lambda topics: {name for name in topics if name in seen})
    m1 = subscriber(world, "m1", "orders.*")
    m1.join(caller=caller)
    assert names(m1) == {"orders"}
    seen.add("orders-eu")
    for _ in range(20):
        world.pass_time(30_000)
        request = join_request("g", "m1", member_epoch=m1.epoch, subscribed_topic_regex="orders.*")
        m1.send(request, caller)
    assert names(m1) == {"orders", "orders-eu"}


def test_an_unused_regex_is_removed(world: GroupWorld) -> None:
    m1, m2 = subscriber(world, "m1", "orders.*"), subscriber(world, "m2", "bills")
    m1.join()
    m2.join()
    assert set(group_of(world).regexes) == {"orders.*", "bills"}
    m2.leave()
    assert set(group_of(world).regexes) == {"orders.*"}
    m1.beat(subscribed_topic_regex="bills")
    assert set(group_of(world).regexes) == {"bills"}
    m1.beat(reports_owned=True)
    assert names(m1) == {"bills"}


def test_a_member_may_remove_its_regex(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join()
    m1.beat(subscribed_topic_regex="", subscribed_topic_names=["bills"])
    m1.beat(reports_owned=True)
    assert names(m1) == {"bills"}
    assert group_of(world).regexes == {}


def test_matches_survive_a_restart(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join()
    before = group_of(world).regexes
    world.restart()
    assert group_of(world).regexes == before
    m1.beat()
    assert m1.epoch == 2


def test_an_invalid_regex_accepted_by_another_broker_affects_only_its_subscribers(world: GroupWorld) -> None:
    m1, m2 = subscriber(world, "m1", "orders.*"), subscriber(world, "m2", "bills")
    m1.join()
    m2.join()
    group = group_of(world)
    group.put_member(replace(group.members["m2"], subscribed_regex=r"(a)\1"))
    world.create_topic("orders-us", 1)
    world.pass_time(10_000)
    m1.beat()
    assert (m1.error, names(m1)) == (None, {"orders", "orders-eu", "orders-us"})
