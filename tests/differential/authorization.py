"""The requests of the permission cases, sent to both brokers as each user."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from barnabas import api
from barnabas.api import registry
from barnabas.api.registry import ApiSpec
from barnabas.security.operations import NOT_ASKED
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.schema import Struct
from differential import symbols
from differential.brokers import OF_CONTROLLERS
from differential.compare import Difference, compare, flatten
from differential.identities import Identities
from differential.offset_permission_cases import OFFSET_CASES
from differential.permission_cases import CASES
from differential.permission_cases_of_control import CONTROL_CASES
from differential.permission_cases_of_groups import CONSUMER_GROUP_CASES, JOINING, Case
from differential.permission_cases_of_tokens import TOKEN_CASES
from differential.permission_cases_of_transactions import TRANSACTION_CASES, wait_for_ends
from differential.permissions import PRINCIPALS, user_of
from differential.secured import ANONYMOUS, MODES, MODES_OF_ANONYMOUS, ClientSecurity, SecuredPair
from differential.sequences import create, topic
from differential.sides import Answer, Side
from differential.symbols import Name
from differential.world import CHANGES_TOPICS, World

ALL_CASES = CASES | CONTROL_CASES | OFFSET_CASES | CONSUMER_GROUP_CASES | TRANSACTION_CASES | TOKEN_CASES
APIS = registry.build(api)

#: Kafka creates it when someone asks for the coordinator of a share group.
SHARE_STATE = "__share_group_state"
#: The distance between the two ways of a user, most of whom have a certificate and a login.
_NEXT_WAY = 3


def mode_of(principal: str, name: str) -> ClientSecurity:
    """Return how a user connects for a case: in two ways by turns, and different users in different ways."""
    if ALL_CASES[name].request.API_KEY in OF_CONTROLLERS:
        return ClientSecurity("CONTROLLER", has_certificate=True)
    ways = MODES_OF_ANONYMOUS if principal == ANONYMOUS else MODES
    number = list(PRINCIPALS).index(principal) + list(ALL_CASES).index(name) % 2 * _NEXT_WAY
    return ways[number % len(ways)]


@dataclass(frozen=True)
class Given:
    """What a user got from both brokers: every difference, and what Kafka refused or left out."""

    differences: list[Difference]
    kafka: Any


class Users:
    """Asks as every user. Each case is asked once."""

    def __init__(self, pair: SecuredPair, world: World) -> None:
        self._pair = pair
        self._world = world
        self._given: dict[str, dict[str, Given]] = {}

    def ask(self, name: str) -> dict[str, Given]:
        """Return what each user gets for the case."""
        if name not in self._given:
            if name.startswith("DeleteTopics"):
                self._recreate_topics()
            self._given[name] = {
                principal: self.ask_by(
                    name, partial(self._pair.side, user=user_of(principal), mode=mode_of(principal, name))
                )
                for principal in PRINCIPALS
            }
        return self._given[name]

    def _recreate_topics(self) -> None:
        """Reset the topics that are to be deleted: both brokers count only requests since their creation."""
        self._world.exchange(_DELETION, 5)
        for _, names in self._world.sides():
            for each in _TO_DELETE:
                names.topic_ids.pop(each.name, None)

    def ask_by(self, name: str, connection: Callable[[str], Side]) -> Given:
        """Return what a user gets for the case, whose connection to each broker is given by the broker's name."""
        self._prepare(name)
        case, world = ALL_CASES[name], self._world
        request, version, refusals_only = case
        spec = APIS[request.API_KEY]
        kafka, barnabas = self._exchange(case, spec, connection)
        if refusals_only:
            refused = refusals(kafka)
            return Given(compare_refusals(spec.name, version, refused, refusals(barnabas)), refused)
        differences = compare(spec.name, version, kafka, barnabas, world.kafka_names, world.barnabas_names)
        differences = [each for each in differences if not is_about_words(each)]
        if isinstance(request, CHANGES_TOPICS):
            world.names_in(request)
            differences += world.await_topics(spec.name, version)
        return Given(differences, permitted(kafka, version, world.kafka_names))

    def _prepare(self, name: str) -> None:
        """Restore what the former user's request has changed."""
        world = self._world
        if name.startswith("DeleteTopics"):
            world.exchange(*create(topic("mine-d"), topic("other-d")))
        if name.startswith("ConsumerGroup"):
            for step in JOINING:
                assert world.exchange(*step) == []
        if name == "Metadata that creates topics":
            world.exchange(_DELETION, 5)
        if name.startswith("EndTxn"):
            wait_for_ends(world)
        if name == "DeleteAcls":
            request, version, _ = ALL_CASES["CreateAcls"]
            assert world.exchange(request, version) == []

    def _exchange(self, case: Case, spec: ApiSpec, connection: Callable[[str], Side]) -> list[Answer]:
        answers: list[Answer] = []
        for side, names in self._world.sides():
            sent = symbols.resolve(case.request, names)
            answer = connection(side.name).exchange(sent, spec.response, case.version)
            if answer.body is not None:
                names.learn(sent, answer.body)
            answers.append(without_share_state(answer))
        return answers


_TO_DELETE: list[Any] = [Name("mine-d"), Name("other-d")]
_DELETION = DeleteTopicsRequest(topic_names=_TO_DELETE, timeout_ms=10_000)


def without_share_state(answer: Answer) -> Answer:
    """Leave out a topic that only Kafka has."""
    body = answer.body
    if isinstance(body, MetadataResponse | DescribeTopicPartitionsResponse):
        body.topics = [each for each in body.topics if each.name != SHARE_STATE]
    return answer


def permitted(answer: Answer, version: int, names: Identities) -> dict[str, Any]:
    """Return error codes, elements, and whether there are operations: what a permission may change."""
    if answer.body is None:
        return {"outcome": answer.outcome}
    found = {}
    for at, value in flatten(answer.body, version, names).items():
        if at.endswith(("error_code", "]", ".count")):
            found[re.sub(r"id \d+ of", "id of", at)] = value
        elif at.endswith("authorized_operations"):
            found[at] = value not in (0, NOT_ASKED)
    return found


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


def compare_refusals(api_name: str, version: int, kafka: list[str], barnabas: list[str]) -> list[Difference]:
    return (
        [] if kafka == barnabas else [Difference(api_name, version, "refusals", "refusals", kafka, barnabas)]
    )
