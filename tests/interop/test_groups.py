"""Members of every client library share the partitions of a topic, and take over from each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from interop.brokers import Broker
from interop.clients import KINDS, Client, ClientError
from interop.topics import eventually, make_topic

PARTITIONS_COUNT = 4
ALL = list(range(PARTITIONS_COUNT))

CASES = [(kind.name, strategy) for kind in KINDS.values() for strategy in kind.strategies]


@contextmanager
def members(name: str, broker: Broker, log_dir: Path) -> Iterator[tuple[Client, Client]]:
    """Start two programs of the same client."""
    first, second = (Client(KINDS[name], broker.bootstrap, log_dir / f"{number}.log") for number in (1, 2))
    try:
        yield first, second
    finally:
        first.close()
        second.close()


def owned(member: Client) -> list[int]:
    partitions: list[int] = member.do("membership")["partitions"]
    return partitions


def values(*each: Client) -> set[str]:
    return {value for member in each for value in member.do("membership")["values"]}


def produce(helper: Client, topic: str, *numbers: int) -> set[str]:
    """Write a value for each number, alternating between all partitions."""
    for partition in ALL:
        records = [{"key": None, "value": str(number)} for number in numbers if number % 4 == partition]
        arguments: dict[str, Any] = {"records": records, "codec": "none", "idempotent": False}
        helper.do("produce", topic=topic, partition=partition, **arguments)
    return set(map(str, numbers))


@pytest.mark.parametrize(("name", "strategy"), CASES, ids=[f"{name} {how}".strip() for name, how in CASES])
def test_members_share_the_partitions_and_take_over(
    name: str, strategy: str, broker: Broker, helper: Client, absent: str, tmp_path: Path
) -> None:
    topic = make_topic(helper, absent, PARTITIONS_COUNT)
    joining = {"topic": topic, "group": absent} | ({"strategy": strategy} if strategy else {})
    first_values = produce(helper, topic, *range(40))
    with members(name, broker, tmp_path) as (one, two):
        one.do("join_group", **joining)
        eventually(lambda: owned(one) == ALL)
        eventually(lambda: values(one) == first_values)
        two.do("join_group", **joining)
        eventually(lambda: len(owned(one)) == len(owned(two)) == PARTITIONS_COUNT // 2)
        eventually(lambda: sorted(owned(one) + owned(two)) == ALL)
        more_values = produce(helper, topic, *range(40, 80))
        eventually(lambda: values(one, two) >= first_values | more_values)
        one.do("leave_group")
        eventually(lambda: owned(two) == ALL)
        last_values = produce(helper, topic, *range(80, 120))
        eventually(lambda: values(two) >= last_values)
        two.do("leave_group")
        one.do("join_group", **joining)
        newest_values = produce(helper, topic, *range(120, 160))
        eventually(lambda: values(one) == newest_values)
        one.do("leave_group")


#: The error in each library when another static member has taken the instance id.
FENCED = {"java": "FencedInstanceIdException", "confluent-kafka": "_FATAL"}


def assignments_count(member: Client) -> int:
    """Return the number of assignments that the member has received."""
    count: int = member.do("membership")["assignments"]
    return count


@pytest.mark.parametrize("name", FENCED)
def test_a_static_classic_member_returns_without_a_rebalance_and_fences_duplicates(
    name: str, broker: Broker, helper: Client, absent: str, tmp_path: Path
) -> None:
    topic = make_topic(helper, absent, PARTITIONS_COUNT)
    joining = {"topic": topic, "group": absent}
    with members(name, broker, tmp_path) as (one, two), members(name, broker, tmp_path) as (three, _):
        one.do("join_group", **joining, instance="first")
        two.do("join_group", **joining, instance="second")
        eventually(lambda: len(owned(one)) == len(owned(two)) == PARTITIONS_COUNT // 2)
        firsts, seconds, seen_count = owned(one), owned(two), assignments_count(two)
        one.do("leave_group")
        one.do("join_group", **joining, instance="first")
        eventually(lambda: owned(one) == firsts)
        before = produce(helper, topic, *range(40))
        eventually(lambda: values(one, two) == before)
        three.do("join_group", **joining, instance="first")
        eventually(lambda: owned(three) == firsts)
        eventually(lambda: error_of(one) == FENCED[name])
        after = produce(helper, topic, *range(40, 80))
        eventually(lambda: values(two, three) >= after)
        assert (owned(two), assignments_count(two)) == (seconds, seen_count)
        three.do("leave_group")  # for longer than its session timeout
        eventually(lambda: owned(two) == ALL)
        two.do("leave_group")


def error_of(member: Client) -> str | None:
    try:
        member.do("membership")
    except ClientError as error:
        return error.name
    return None
