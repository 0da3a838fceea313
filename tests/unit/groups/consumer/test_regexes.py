"""Subscriptions by regular expression: which topics, when, and what is refused."""

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
def test_a_name_must_match_as_a_whole(pattern: str, matched: set[str]) -> None:
    assert matching(pattern, ("orders", "orders-eu", "bills")) == matched


def test_names_that_come_and_go_change_what_an_expression_matches() -> None:
    kept = {"orders", "orders-eu", "bills"}
    pattern = "orders.*|(once)"
    assert matching(pattern, kept) == {"orders", "orders-eu"}
    assert matching(pattern, kept) is matching(pattern, kept)
    assert matching(pattern, {"orders-us", "orders", "bills"}) == {"orders-us", "orders"}


@pytest.mark.parametrize("pattern", ["(a", "[", "*", "(?=a)", r"(a)\1", "a{1001}"])
def test_what_is_no_expression_of_re2_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(KafkaError, match="is not a valid regular expression") as refused:
        check_regex(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_expression_that_makes_others_go_back_for_ever_takes_no_time() -> None:
    assert matching("(a*)*(a*)*(a*)*b", ["a" * 249]) == frozenset()


def test_a_subscriber_gets_what_its_expression_matches(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join()
    assert names(m1) == {"orders", "orders-eu"}
    assert group_of(world).is_subscribed_to("orders-eu")
    assert not group_of(world).is_subscribed_to("bills")


def test_names_and_an_expression_may_be_used_together(world: GroupWorld) -> None:
    m1 = subscriber(world, "m1", "orders.*")
    m1.join("bills")
    assert names(m1) == {"orders", "orders-eu", "bills"}


def test_topics_that_come_later_are_found_but_not_looked_for_all_the_time(world: GroupWorld) -> None:
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


def test_expressions_are_matched_anew_after_a_while_though_no_topic_has_come(world: GroupWorld) -> None:
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


def test_an_expression_that_nobody_has_any_more_is_forgotten(world: GroupWorld) -> None:
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


def test_a_member_may_end_its_subscription_by_expression(world: GroupWorld) -> None:
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


def test_an_expression_that_another_broker_has_let_in_fails_nobody_else(world: GroupWorld) -> None:
    m1, m2 = subscriber(world, "m1", "orders.*"), subscriber(world, "m2", "bills")
    m1.join()
    m2.join()
    group = group_of(world)
    group.put_member(replace(group.members["m2"], subscribed_regex=r"(a)\1"))
    world.create_topic("orders-us", 1)
    world.pass_time(10_000)
    m1.beat()
    assert (m1.error, names(m1)) == (None, {"orders", "orders-eu", "orders-us"})
