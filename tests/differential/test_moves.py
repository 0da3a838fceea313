"""Partitions move among several brokers as Apache Kafka's controller moves them: decisions compared, step by step."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from barnabas.metadata.broker_lifecycle import decide_elections
from barnabas.metadata.brokers import decide_register
from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.elections import decide_elect
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import Election, brokers_up
from barnabas.metadata.reassignments import Target, decide_reassign
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from differential.budget import EXAMPLES, IS_FIXED
from differential.controller import BROKERS, Controller, controller
from support.images import cluster, decide_isr, manually_assigned, replayed, with_elr

TOPIC = "moved"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Controller]:
    with tempfile.TemporaryDirectory(prefix="moves-") as home, controller(Path(home)) as running:
        yield running


class Reassign(NamedTuple):
    replicas: tuple[int, ...] | None
    allows_factor_change: bool = True


class Elect(NamedTuple):
    election: Election


class Report(NamedTuple):
    isr: tuple[int, ...]


class Fence(NamedTuple):
    broker_id: int
    is_fenced: bool = True


Step = Reassign | Elect | Report | Fence

#: min.insync.replicas of the topics.
MIN_ISR = 2
RULES = ElectionRules(min_isr=lambda topic: MIN_ISR)


class Both:
    """A topic with one partition, in Kafka and in an image."""

    def __init__(self, kafka: Controller, name: str, replicas: tuple[int, ...]) -> None:
        self.kafka, self.name = kafka, name
        self.image = with_elr(cluster(5, manually_assigned(name, replicas)))
        min_isr = CreatableTopicConfig("min.insync.replicas", str(MIN_ISR))
        topic = CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, list(replicas))], [min_isr])
        [made] = kafka.ask(CreateTopicsRequest([topic], 10_000), CreateTopicsResponse, 7).topics
        assert not made.error_code, made
        self.topic_id = made.topic_id
        self.check()

    @property
    def state(self) -> PartitionRegistration:
        return self.image.partition(self.image.topics[self.name], 0)

    def check(self) -> None:
        state = self.state
        if state.leader not in brokers_up(self.image):
            state = replace(state, leader=NO_LEADER)
        assert self.kafka.await_state(self.name, state) == state

    def do(self, step: Step) -> None:
        before = self.state
        error, ours = self._apply_to_kafka(step), self._decide(step)
        assert error == ours, (step, before)
        self.check()

    def _apply_to_kafka(self, step: Step) -> str:
        if isinstance(step, Report):
            return self.kafka.report(self.topic_id, self.state, list(self._in_sync(step)))
        if isinstance(step, Fence):
            self.kafka.fence(step.broker_id, is_fenced=step.is_fenced)
            return "NONE"
        if isinstance(step, Elect):
            request = ElectLeadersRequest(step.election, [TopicPartitions(self.name, [0])], 10_000)
            [result] = self.kafka.ask(request, ElectLeadersResponse, 2).replica_election_results
            return ErrorCode(result.partition_result[0].error_code).name
        replicas = None if step.replicas is None else list(step.replicas)
        topics = [ReassignableTopic(self.name, [ReassignablePartition(0, replicas)])]
        order = AlterPartitionReassignmentsRequest(10_000, step.allows_factor_change, topics)
        [answer] = self.kafka.ask(order, AlterPartitionReassignmentsResponse, 1).responses
        return ErrorCode(answer.partitions[0].error_code).name

    def _in_sync(self, step: Report) -> tuple[int, ...]:
        """Return the reported ISR: replicas that are up, including the leader."""
        up, leader = brokers_up(self.image), self.state.leader
        return tuple(
            each for each in self.state.replicas if each == leader or (each in step.isr and each in up)
        )

    def _decide(self, step: Step) -> str:
        if isinstance(step, Report):
            self._replay(decide_isr(self.image, self.name, 0, self._in_sync(step), RULES))
            return "NONE"
        if isinstance(step, Fence):
            changed = replace(self.image.brokers[str(step.broker_id)], fenced=step.is_fenced)
            self._replay(decide_register(self.image.brokers, changed))
            self._replay(decide_elections(self.image, RULES))
            return "NONE"
        if isinstance(step, Elect):
            decision = decide_elect(self.image, step.election, [(self.name, [0])], RULES)
        else:
            requested = [(self.name, [Target(0, step.replicas)])]
            allows_factor_change = step.allows_factor_change
            decision = decide_reassign(
                self.image, requested, RULES, allows_factor_change=allows_factor_change
            )
        self._replay(decision)
        [outcome] = decision.response[0].partitions
        return outcome.error.code.name if outcome.error else "NONE"

    def _replay(self, decision: object) -> None:
        self.image: MetadataImage = replayed(self.image, decision)  # type: ignore[arg-type]


def is_alike(state: PartitionRegistration, step: Step) -> bool:
    """Whether both brokers interpret the step alike: see docs/differences.md for targets that replace others."""
    if isinstance(step, Report):
        return state.leader != NO_LEADER
    if not isinstance(step, Reassign) or step.replicas is None or not state.is_reassigning:
        return True
    coming, going = set(step.replicas) - set(state.replicas), set(state.replicas) - set(step.replicas)
    return bool(coming and going) and not set(step.replicas) & set(state.adding)


REPLICAS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)
STEPS = st.one_of(
    st.builds(Reassign, st.none() | REPLICAS | REPLICAS, st.booleans()),
    st.builds(Elect, st.sampled_from([Election.PREFERRED, Election.UNCLEAN])),
    st.builds(Report, st.lists(st.sampled_from(BROKERS)).map(tuple)),
    st.builds(Fence, st.sampled_from(BROKERS), st.booleans()),
)
numbers = iter(range(1_000_000))


@settings(
    max_examples=EXAMPLES,
    derandomize=IS_FIXED,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(replicas=REPLICAS, steps=st.lists(STEPS, max_size=8))
def test_any_history_of_a_partition_is_the_same_as_in_kafka(
    kafka: Controller, replicas: tuple[int, ...], steps: list[Step]
) -> None:
    both = Both(kafka, f"{TOPIC}-{next(numbers)}", replicas)
    for step in steps:
        if is_alike(both.state, step):
            both.do(step)
    for broker_id in BROKERS:
        both.do(Fence(broker_id, is_fenced=False))


def test_a_reassignment_from_start_to_completion(kafka: Controller) -> None:
    both = Both(kafka, f"{TOPIC}-{next(numbers)}", (2, 3))
    steps = [Reassign((4, 5)), Report((2, 3, 4)), Elect(Election.PREFERRED), Report(BROKERS), Reassign(None)]
    for step in steps:
        both.do(step)
    assert (both.state.replicas, both.state.leader, both.state.isr) == ((4, 5), 4, (4, 5))


@pytest.mark.parametrize(
    ("targets", "adding", "removing"),
    [([(2, 3, 4), (2, 3)], (4,), (4,)), ([(2, 3, 4), (2, 3, 4, 5)], (5,), ())],
)
def test_a_target_that_replaces_another_differs_as_documented(
    kafka: Controller, targets: list[tuple[int, ...]], adding: tuple[int, ...], removing: tuple[int, ...]
) -> None:
    both = Both(kafka, f"{TOPIC}-{next(numbers)}", (2, 3))
    first, second = map(Reassign, targets)
    both.do(first)
    expected = replace(both.state, replicas=max(targets, key=len), adding=adding, removing=removing)
    assert both._apply_to_kafka(second) == both._decide(second) == "NONE"
    assert kafka.await_state(both.name, expected) == expected
    assert (both.state.adding, both.state.removing) != (adding, removing)
