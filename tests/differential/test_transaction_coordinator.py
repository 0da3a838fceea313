"""Transactional ids go through the same states on both brokers, for any sequence of requests."""

import itertools
import time
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.wire.schema import Message
from differential.brokers import wait_for
from differential.budget import EXAMPLES, IS_FIXED
from differential.sides import Side
from differential.world import Pair

TOPIC = "of-transactions"
POLL_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.002
NO_PRODUCER = (-1, -1)

_numbers = itertools.count(1)


class Init(NamedTuple):
    who: int | None  #: the producer that it claims to be, counted back from the last one; None for a new one
    epoch_by: int = 0  #: offset from its real epoch
    timeout_ms: int = 60_000
    version: int = 5


class Add(NamedTuple):
    who: int
    partitions: tuple[int, ...]
    epoch_by: int = 0
    version: int = 3
    verify_only: bool = False
    topic: str = TOPIC


class AddOffsets(NamedTuple):
    who: int
    epoch_by: int = 0
    version: int = 4


class End(NamedTuple):
    who: int
    commit: bool
    epoch_by: int = 0
    version: int = 5


Step = Init | Add | AddOffsets | End


class Coordinated:
    """One transactional id on one of the brokers. Producer ids are numbered in the order of their assignment."""

    def __init__(self, side: Side, transactional_id: str) -> None:
        self.side, self.transactional_id = side, transactional_id
        self.given = [NO_PRODUCER]
        self.order: dict[int, int] = {-1: -1}

    def ask(self, request: Message, response: type[Message], version: int) -> Any:
        body = self.side.exchange(request, response, version).body
        assert body is not None, request
        return body

    def assign(self, producer_id: int, epoch: int) -> tuple[int, int]:
        return self.order.setdefault(producer_id, len(self.order) - 1), epoch

    def who(self, step: Any) -> tuple[int, int]:
        if step.who is None:
            return NO_PRODUCER
        producer_id, epoch = self.given[-1 - min(step.who, len(self.given) - 1)]
        return producer_id, max(epoch + step.epoch_by, -1)

    def do(self, step: Step) -> object:
        response = getattr(self, f"_{type(step).__name__.lower()}")(step)
        return response, self.completed_state()

    def completed_state(self) -> object:
        """Return the coordinator's state after it has written all markers."""
        deadline_s = time.monotonic() + POLL_TIMEOUT_S
        while True:
            request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
            [state] = self.ask(request, DescribeTransactionsResponse, 0).transaction_states
            if not state.transaction_state.startswith("Prepare"):
                break
            assert time.monotonic() < deadline_s, state
            time.sleep(POLL_INTERVAL_S)
        return (
            ErrorCode(state.error_code).name,
            state.transaction_state,
            state.transaction_timeout_ms,
            state.transaction_start_time_ms > 0,
            self.assign(state.producer_id, state.producer_epoch) if not state.error_code else None,
            sorted((topic.topic, sorted(topic.partitions)) for topic in state.topics),
        )

    def _init(self, step: Init) -> object:
        producer_id, epoch = self.who(step)
        request = InitProducerIdRequest(self.transactional_id, step.timeout_ms, producer_id, epoch)
        return self._given(self.ask(request, InitProducerIdResponse, step.version))

    def _given(self, answer: Any) -> object:
        if not answer.error_code and answer.producer_id >= 0:
            self.given.append((answer.producer_id, answer.producer_epoch))
        return ErrorCode(answer.error_code).name, self.assign(answer.producer_id, answer.producer_epoch)

    def _add(self, step: Add) -> object:
        producer_id, epoch = self.who(step)
        topics = [AddPartitionsToTxnTopic(step.topic, list(step.partitions))]
        request = AddPartitionsToTxnRequest(
            [
                AddPartitionsToTxnTransaction(
                    self.transactional_id, producer_id, epoch, step.verify_only, topics
                )
            ],
            self.transactional_id,
            producer_id,
            epoch,
            topics,
        )
        answer = self.ask(request, AddPartitionsToTxnResponse, step.version)
        found = [each.topic_results for each in answer.results_by_transaction]
        return answer.error_code, [
            (topic.name, result.partition_index, ErrorCode(result.partition_error_code).name)
            for topics in [answer.results_by_topic_v3_and_below, *found]
            for topic in topics
            for result in sorted(topic.results_by_partition, key=lambda each: int(each.partition_index))
        ]

    def _addoffsets(self, step: AddOffsets) -> object:
        request = AddOffsetsToTxnRequest(self.transactional_id, *self.who(step), "a-group")
        return ErrorCode(self.ask(request, AddOffsetsToTxnResponse, step.version).error_code).name

    def _end(self, step: End) -> object:
        request = EndTxnRequest(self.transactional_id, *self.who(step), step.commit)
        return self._given(self.ask(request, EndTxnResponse, step.version))


@pytest.fixture(scope="module")
def both(pair: Pair) -> Pair:
    for side in (pair.kafka, pair.barnabas):
        request = CreateTopicsRequest([CreatableTopic(TOPIC, 2, 1)], 10_000)
        side.exchange(request, CreateTopicsResponse, 5)
        ready = InitProducerIdRequest("ready", 60_000)
        wait_for(side, ready, InitProducerIdResponse, 4)
    return pair


def check(pair: Pair, steps: list[Step]) -> None:
    name = f"tx-{next(_numbers)}"
    kafka, barnabas = Coordinated(pair.kafka, name), Coordinated(pair.barnabas, name)
    for at, step in enumerate(steps):
        assert barnabas.do(step) == kafka.do(step), steps[: at + 1]


LAST, BEFORE = 0, 1
BEGUN: list[Step] = [Init(None), Add(LAST, (0,))]
HISTORIES: dict[str, list[Step]] = {
    "commits of protocol 2": [
        *BEGUN,
        End(LAST, True),
        End(BEFORE, True),
        End(BEFORE, False),
        Add(LAST, (1,)),
        End(LAST, True),
    ],
    "aborts of protocol 2": [*BEGUN, End(LAST, False), End(BEFORE, False), End(LAST, False), End(LAST, True)],
    "protocol 1": [
        *BEGUN,
        End(LAST, True, version=4),
        End(LAST, True, version=4),
        End(LAST, False, version=4),
        Add(LAST, (0, 1)),
        End(LAST, False, version=4),
        End(LAST, False, version=4),
        End(LAST, True, version=4),
    ],
    "ends of nothing": [Init(None), End(LAST, True), End(LAST, True, version=4), End(LAST, False)],
    "ends of nobody": [End(LAST, True), End(LAST, False, version=4), Init(None), End(BEFORE, True)],
    "a zombie": [
        *BEGUN,
        Init(None),
        Init(None),
        Add(BEFORE, (1,)),
        Add(BEFORE, (1,), version=1),
        End(BEFORE, True, version=1),
        End(BEFORE, True),
        Init(BEFORE),
        Init(BEFORE, version=3),
        AddOffsets(BEFORE),
        AddOffsets(BEFORE, version=1),
    ],
    "repeated": [Init(None), Init(LAST), Init(BEFORE), Init(BEFORE), Init(LAST, 1), Init(LAST, -2)],
    "fenced, and repeated by the fenced producer": [*BEGUN, Init(LAST), Init(LAST), Init(BEFORE)],
    "both protocols": [*BEGUN, End(LAST, True, version=4), Add(LAST, (0,)), End(LAST, True), End(LAST, True)],
    "offsets": [Init(None), AddOffsets(LAST), AddOffsets(LAST), AddOffsets(LAST, 1), End(LAST, True)],
    "partitions that are not there": [Init(None), Add(LAST, (0, 7)), Add(LAST, (0,), topic="gone")],
    "an internal topic": [Init(None), Add(LAST, (0,), topic="__transaction_state")],
    "brokers that ask": [
        Init(None),
        Add(LAST, (0,), version=5, verify_only=True),
        Add(LAST, (0,), version=5),
        Add(LAST, (0, 1), version=5, verify_only=True),
        Add(LAST, (0,), 1, version=5, verify_only=True),
        Add(LAST, (0, 7), version=5, verify_only=True),
        End(LAST, False),
    ],
    "timeouts": [Init(None, timeout_ms=timeout) for timeout in (0, -1, 1, 900_000, 900_001, 2**31 - 1)],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_has_the_same_responses_as_in_kafka(both: Pair, name: str) -> None:
    check(both, HISTORIES[name])


whos = st.sampled_from([0, 0, 0, 0, 1, 1, 2])
epochs = st.sampled_from([0, 0, 0, 0, 0, -1, 1])
partitions = st.sampled_from([(0,), (1,), (0, 1)])
steps = st.one_of(
    st.builds(Init, st.none() | whos, epochs, st.just(60_000), st.sampled_from([3, 5])),
    st.builds(Add, whos, partitions, epochs, st.sampled_from([1, 3, 4, 5]), st.booleans()),
    st.builds(AddOffsets, whos, epochs, st.sampled_from([1, 4])),
    st.builds(End, whos, st.booleans(), epochs, st.sampled_from([1, 4, 5, 5, 5])),
)


@settings(
    max_examples=EXAMPLES,
    derandomize=IS_FIXED,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
@given(st.lists(steps, min_size=3, max_size=12))
def test_random_histories_have_the_same_responses_as_in_kafka(both: Pair, steps: list[Step]) -> None:
    check(both, [Init(None), *steps])


@pytest.mark.parametrize(
    ("filters", "version"),
    [
        ({}, 0),
        ({"state_filters": ["Empty", "Open", "open"]}, 0),
        ({"state_filters": ["Ongoing"], "duration_filter": 0}, 1),
        ({"duration_filter": 3_600_000}, 1),
        ({"producer_id_filters": [-1, 10**15]}, 1),
        ({"transactional_id_pattern": "listed-.*"}, 2),
        ({"transactional_id_pattern": "listed"}, 2),
        ({"transactional_id_pattern": ""}, 2),
        ({"transactional_id_pattern": "("}, 2),
        ({"transactional_id_pattern": "(?!x)"}, 2),
    ],
)
def test_transactional_ids_are_listed_as_in_kafka(both: Pair, filters: dict[str, Any], version: int) -> None:
    found = []
    for side in (both.kafka, both.barnabas):
        for name, step in [("listed-a", Init(None)), ("listed-b", Init(None))]:
            Coordinated(side, name).do(step)
        answer = side.exchange(ListTransactionsRequest(**filters), ListTransactionsResponse, version).body
        assert isinstance(answer, ListTransactionsResponse)
        listed = {
            (each.transactional_id, each.transaction_state)
            for each in answer.transaction_states
            if each.transactional_id.startswith("listed")
        }
        found.append((answer.error_code, sorted(answer.unknown_state_filters), listed))
    assert found[0] == found[1]
