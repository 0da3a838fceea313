"""Every request of every principal gets Apache Kafka's response, permission by permission."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.wire.schema import Struct
from differential import brokers, listed, symbols
from differential.batches import Batch
from differential.compare import Difference, brief, compare
from differential.offset_permission_cases import OFFSET_CASES
from differential.permission_cases import CASES, Case
from differential.permission_cases_of_groups import CONSUMER_GROUP_CASES, JOINING
from differential.permission_cases_of_transactions import TRANSACTION_CASES, begin_transactions
from differential.permissions import ANY_ACL, HOSTS, PRINCIPALS, SETTINGS, acls
from differential.sequences import create, produce, topic
from differential.sides import Answer, Side
from differential.symbols import Name
from differential.world import CHANGES_TOPICS, Pair, World

TO_DELETE: list[Any] = [Name("mine-d"), Name("other-d")]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with (
        tempfile.TemporaryDirectory(prefix="authorization-") as home,
        brokers.pair_of_brokers(Path(home), brokers.SETTINGS | SETTINGS) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def world(pair: Pair) -> Iterator[World]:
    """Create topics, and the ACLs of each principal."""
    with pair.world() as fresh:
        request = acls(fresh.kafka_names.prefix)
        assert fresh.exchange(request, 3) == []
        wait_for_acls(pair, request)
        assert fresh.exchange(*create(topic("mine"), topic("other"))) == []
        for name in ("mine", "other"):
            for step in produce(name, Batch()):
                assert fresh.exchange(*step) == []
        begin_transactions(fresh)
        yield fresh


ALL_CASES = CASES | OFFSET_CASES | CONSUMER_GROUP_CASES | TRANSACTION_CASES


def wait_for_acls(pair: Pair, request: CreateAclsRequest) -> None:
    """Wait until Kafka's broker has the ACLs, a little after its controller."""
    expected = DescribeAclsRequest(
        **ANY_ACL, resource_name_filter=None, principal_filter=None, host_filter=None
    )
    for side in (pair.kafka, pair.barnabas):
        count = 0
        while count < len(set(map(brief, request.creations))):
            answer = side.exchange(expected, DescribeAclsResponse, 3).body
            assert isinstance(answer, DescribeAclsResponse)
            count = sum(len(resource.acls) for resource in answer.resources)


def recreate_topics(world: World) -> None:
    """Reset the topics that are to be deleted: both brokers count only requests since their creation."""
    world.exchange(DeleteTopicsRequest(topic_names=TO_DELETE, timeout_ms=10_000), 5)
    for _, names in world.sides():
        for each in TO_DELETE:
            names.topic_ids.pop(each.name, None)


def exchange_as(world: World, principal: str, case: Case) -> list[Difference]:
    """Send the request from the principal's address to both brokers; return every difference."""
    request, version, refusals_only = case
    spec = world.pair.apis[request.API_KEY]
    answers: list[Answer] = []
    for side, names in world.sides():
        sent = symbols.resolve(request, names)
        user = Side(side.name, side.bootstrap, source=HOSTS[principal])
        answers.append(user.exchange(sent, spec.response, version))
        user.disconnect()
        if answers[-1].body is not None:
            names.learn(sent, answers[-1].body)
    if refusals_only:
        return compare_refusals(spec.name, version, *map(refusals, answers))
    differences = compare(spec.name, version, *answers, world.kafka_names, world.barnabas_names)  # type: ignore[call-arg]
    differences = [each for each in differences if not is_about_words(each)]
    if isinstance(request, CHANGES_TOPICS):
        world.names_in(request)
        differences += world.await_topics(spec.name, version)
    return differences


def is_about_words(difference: Difference) -> bool:
    """Whether only texts differ: Kafka mostly sends none, Barnabas names the missing permission."""
    return difference.path.endswith("error_message") and bool(difference.barnabas)


def refusals(answer: Answer) -> list[str]:
    """Return every authorization error code in a response, sorted by name."""
    codes = [answer.outcome] if answer.body is None else list(error_codes(answer.body))
    return sorted(code for code in codes if code.endswith("AUTHORIZATION_FAILED"))


def error_codes(struct: Struct) -> Iterator[str]:
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        if field.name == "error_code":
            yield ErrorCode(value).name
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                yield from error_codes(each)


def compare_refusals(api: str, version: int, kafka: list[str], barnabas: list[str]) -> list[Difference]:
    return [] if kafka == barnabas else [Difference(api, version, "refusals", "refusals", kafka, barnabas)]


@pytest.mark.parametrize("name", ALL_CASES)
def test_each_principal_gets_kafkas_answer(world: World, name: str) -> None:
    case = ALL_CASES[name]
    differences = []
    if name.startswith("DeleteTopics"):
        recreate_topics(world)
    for principal in PRINCIPALS:
        if name.startswith("DeleteTopics"):
            world.exchange(*create(topic("mine-d"), topic("other-d")))
        if name.startswith("ConsumerGroup"):
            for step in JOINING:
                assert world.exchange(*step) == []
        if name == "Metadata that creates topics":
            world.exchange(DeleteTopicsRequest(topic_names=TO_DELETE, timeout_ms=10_000), 5)
        found = exchange_as(world, principal, case)
        found = [each for each in found if listed.reason_for(each) is None]
        differences += [f"{principal}: {each}" for each in found]
    assert not differences, "\n".join(differences)
