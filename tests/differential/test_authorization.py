"""Every request of every user gets the response of a secured Apache Kafka, permission by permission."""

from collections.abc import Iterator

import pytest

from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from differential import listed
from differential.authorization import ALL_CASES, APIS, Users, mode_of
from differential.batches import Batch
from differential.brokers import wait_for
from differential.compare import brief
from differential.permission_cases_of_tokens import create_request, create_tokens
from differential.permission_cases_of_transactions import begin_transactions
from differential.permission_checks import BEFORE_LOGIN, CHECKS, decisive, implying
from differential.permissions import ANY_ACL, acls, user_of
from differential.secured import MODES, SecuredPair
from differential.sequences import create, produce, topic
from differential.world import Pair, World

#: Barnabas's own APIs have higher keys.
KAFKAS_LAST_KEY = 1_000


@pytest.fixture(scope="module")
def world(secured: SecuredPair) -> Iterator[World]:
    """Create topics, transactions and tokens, and the ACLs of each user."""
    with secured.admins.world() as fresh:
        request = acls(fresh.kafka_names.prefix)
        assert fresh.exchange(request, 3) == []
        wait_for_acls(secured.admins, request)
        assert fresh.exchange(*create(topic("mine"), topic("other"))) == []
        for name in ("mine", "other"):
            for step in produce(name, Batch()):
                assert fresh.exchange(*step) == []
        begin_transactions(fresh)
        create_tokens(fresh)
        yield fresh


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


@pytest.fixture(scope="module")
def users(secured: SecuredPair, world: World) -> Users:
    return Users(secured, world)


@pytest.mark.parametrize("name", ALL_CASES)
def test_each_user_gets_kafkas_answer(users: Users, name: str) -> None:
    differences = [
        f"{principal}, {mode_of(principal, name)}: {each}"
        for principal, given in users.ask(name).items()
        for each in given.differences
        if listed.reason_for(each) is None
    ]
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("api", CHECKS)
def test_each_permission_that_kafka_checks_is_decisive_in_a_case(users: Users, api: str) -> None:
    found = set()
    for name, case in ALL_CASES.items():
        if APIS[case.request.API_KEY].name == api:
            found |= decisive({principal: given.kafka for principal, given in users.ask(name).items()})
    assert CHECKS[api] <= found <= CHECKS[api] | implying(CHECKS[api])


@pytest.fixture
def tokens(secured: SecuredPair, world: World, owner: str) -> Iterator[dict[str, tuple[str, bytes]]]:
    """Create a token for a user; return its id and password by the broker's name."""
    user = user_of(owner)
    assert world.exchange(create_request(user), 3) == []
    created = {side.name: list(names.hmacs.items())[-1] for side, names in world.sides()}
    described = DescribeDelegationTokenRequest([DescribeDelegationTokenOwner("User", user)])
    for side, _ in world.sides():
        token_id = created[side.name][0]
        wait_for(
            side,
            described,
            DescribeDelegationTokenResponse,
            3,
            lambda found, expected=token_id: expected in [token.token_id for token in found.tokens],
        )
    yield created
    for broker, (_, hmac) in created.items():
        removal = ExpireDelegationTokenRequest(hmac, expiry_time_period_ms=-1)
        removed = (
            secured.side(broker, user, MODES[0]).exchange(removal, ExpireDelegationTokenResponse, 2).body
        )
        assert isinstance(removed, ExpireDelegationTokenResponse)
        assert not removed.error_code, removed


@pytest.mark.parametrize("owner", ["READ TOPIC", "everything but READ TOPIC"])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_delegation_token_has_the_permissions_of_its_owner(
    secured: SecuredPair, users: Users, tokens: dict[str, tuple[str, bytes]], owner: str, mechanism: str
) -> None:
    sides = {broker: secured.side_by_token(broker, mechanism, *token) for broker, token in tokens.items()}
    for name in ("Fetch", "Metadata with operations", "OffsetDelete"):
        given = users.ask_by(name, sides.__getitem__)
        assert [each for each in given.differences if listed.reason_for(each) is None] == []
        assert given.kafka == users.ask(name)[owner].kafka
    for side in sides.values():
        side.disconnect()


def test_each_api_of_kafka_has_a_case() -> None:
    served = {spec.name for key, spec in APIS.items() if key < KAFKAS_LAST_KEY}
    assert {APIS[case.request.API_KEY].name for case in ALL_CASES.values()} == served - BEFORE_LOGIN
    assert set(CHECKS) == served - BEFORE_LOGIN
