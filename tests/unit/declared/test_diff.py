"""Changes between a declared state and a live one."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from barnabas.declared.diff import ChangeAction, as_json, diff_states, same_value
from barnabas.declared.state import (
    KEPT_SECRET,
    PRUNABLE,
    BrokerState,
    ClusterState,
    Credential,
    SecretRef,
    Section,
    TopicState,
)
from barnabas.wire.scram import ScramMechanism
from support.declared_states import states

SHA_256 = ScramMechanism.SCRAM_SHA_256


def found(declared: ClusterState, live: ClusterState) -> dict[tuple[str, str], tuple[str, Any, Any]]:
    return {
        (each.resource, each.key): (each.action.value, each.before, each.after)
        for each in diff_states(declared, live)
    }


@given(states(frozenset(PRUNABLE)))
def test_a_state_has_no_changes_to_itself(state: ClusterState) -> None:
    assert diff_states(state, state) == []


@given(states(), states())
def test_undeclared_resources_are_kept(one: ClusterState, other: ClusterState) -> None:
    assert diff_states(ClusterState(), one) == []
    actions = {each.action for each in diff_states(one, other) if each.section is not Section.USERS}
    assert ChangeAction.DELETE not in actions


@given(states(frozenset(PRUNABLE)), states())
def test_with_pruning_each_change_has_its_reverse(one: ClusterState, other: ClusterState) -> None:
    there = {(each.resource, each.key) for each in diff_states(one, other)}
    back = {(each.resource, each.key) for each in diff_states(replace(other, prune=one.prune), one)}
    assert {name for name, key in there} == {name for name, key in back}


def test_a_topics_changes_are_by_key() -> None:
    live = ClusterState(
        topics={
            "t": TopicState(3, 1, {"retention.ms": "5", "segment.ms": "7"}),
            "gone": TopicState(2, 1),
        }
    )
    declared = ClusterState(
        topics={
            "t": TopicState(6, None, {"retention.ms": "6", "segment.ms": None}),
            "new": TopicState(1),
        }
    )
    assert found(declared, live) == {
        ("topic/t", "partitions"): ("alter", 3, 6),
        ("topic/t", "retention.ms"): ("alter", "5", "6"),
        ("topic/t", "segment.ms"): ("delete", "7", None),
        ("topic/new", "partitions"): ("create", None, 1),
        ("topic/new", "replication_factor"): ("create", None, "broker's default"),
    }


def test_pruning_is_configured_per_section() -> None:
    live = ClusterState(
        topics={"t": TopicState(1, 1, {"retention.ms": "5"}), "u": TopicState(2)},
        groups={"g": {"k": "v"}},
    )
    declared = ClusterState(topics={"t": TopicState()})
    assert found(declared, live) == {}
    assert found(replace(declared, prune=frozenset({"topics"})), live) == {
        ("topic/u", "partitions"): ("delete", 2, None)
    }
    assert found(replace(declared, prune=frozenset({"configs"})), live) == {
        ("topic/t", "retention.ms"): ("delete", "5", None)
    }
    assert found(replace(declared, prune=frozenset({"groups"})), live) == {
        ("group/g", "k"): ("delete", "v", None)
    }


def test_defaults_that_kafka_sets_for_every_broker_are_not_pruned() -> None:
    live = ClusterState(brokers={"": BrokerState({"min.insync.replicas": "1", "k": "v"})})
    for brokers in ({}, {"": BrokerState()}):
        found_there = found(ClusterState(brokers=brokers, prune=frozenset({"brokers"})), live)
        assert found_there == {("broker/", "k"): ("delete", "v", None)}
    declared = ClusterState(brokers={"": BrokerState({"min.insync.replicas": "2"})})
    assert found(declared, live) == {("broker/", "min.insync.replicas"): ("alter", "1", "2")}


def test_passwords_are_not_compared_but_iterations_are() -> None:
    live = ClusterState(users={"alice": {SHA_256: Credential(8192)}})
    secret = SecretRef("env", "X")
    for iterations, changes in ((None, 0), (8192, 0), (4096, 1)):
        declared = ClusterState(users={"alice": {SHA_256: Credential(iterations, secret)}})
        assert len(diff_states(declared, live)) == changes


def test_hidden_broker_values_count_as_declared() -> None:
    declared = ClusterState(brokers={"1": BrokerState({"ssl.keystore.password": SecretRef("env", "X")})})
    assert (
        found(declared, ClusterState(brokers={"1": BrokerState({"ssl.keystore.password": KEPT_SECRET})}))
        == {}
    )
    [change] = diff_states(declared, ClusterState())
    assert as_json(change)["after"] == "(hidden)"


def test_expected_broker_settings_cannot_be_changed() -> None:
    declared = ClusterState(brokers={"1": BrokerState({}, {"num.io.threads": "9", "node.id": "1"})})
    live = ClusterState(brokers={"1": BrokerState({}, {"num.io.threads": "8", "node.id": "1"})})
    [change] = diff_states(declared, live)
    assert (change.action, change.before, change.after) == (ChangeAction.EXPECT, "8", "9")
    assert not change.is_possible


@pytest.mark.parametrize(
    ("key", "one", "other", "same"),
    [
        ("retention.ms", "0100", "100", True),
        ("retention.ms", "100", "101", False),
        ("min.cleanable.dirty.ratio", "0.50", "0.5", True),
        ("preallocate", "TRUE", "true", True),
        ("cleanup.policy", "compact, delete", "compact,delete", True),
        ("cleanup.policy", "delete,compact", "compact,delete", True),
        ("cleanup.policy", "delete,compact", "delete", False),
        ("no.such.key", "1 ", "1", False),
        ("retention.ms", "soon", "soon", True),
        ("retention.ms", None, "100", False),
    ],
)
def test_values_are_compared_as_a_broker_parses_them(key: str, one: str, other: str, same: bool) -> None:
    assert same_value(Section.TOPICS, key, one, other) is same
