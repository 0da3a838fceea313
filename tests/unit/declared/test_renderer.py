"""Rendering of states: the text parses to the same state, always in the same order."""

import re
from pathlib import Path

from hypothesis import given

from barnabas.declared.parser import read_state
from barnabas.declared.renderer import to_tree, to_yaml
from barnabas.declared.state import (
    KEPT_SECRET,
    BrokerState,
    ClusterState,
    Credential,
    SecretRef,
    TopicState,
)
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism
from support.declared_states import states


@given(states())
def test_rendered_states_parse_to_the_same_state(tmp_path_factory, state: ClusterState) -> None:  # type: ignore[no-untyped-def]
    file: Path = tmp_path_factory.mktemp("declared") / "cluster.yaml"
    file.write_text(to_yaml(to_tree(state)) or "{}", encoding="utf-8")
    assert read_state(file) == state


def test_acls_on_a_name_that_ends_with_a_star_and_on_a_prefix_are_rendered_apart(tmp_path: Path) -> None:
    about = "User:alice", "*", AclOperation.READ, AclPermission.ALLOW
    acls = {
        AclBinding(ResourceType.TOPIC, "ord*", PatternType.LITERAL, *about),
        AclBinding(ResourceType.TOPIC, "ord", PatternType.PREFIXED, *about),
    }
    file = tmp_path / "cluster.yaml"
    file.write_text(to_yaml(to_tree(ClusterState(acls=frozenset(acls)))))
    assert read_state(file).acls == acls


def test_the_text_is_ordered_and_plain() -> None:
    state = ClusterState(
        topics={"b": TopicState(2, 1, {"z": "1", "a": "true"}), "a": TopicState(1)},
        brokers={
            "10": BrokerState({"k": "x"}),
            "9": BrokerState({"k": SecretRef("file", "word")}),
            "": BrokerState({"k": "0.5"}),
        },
    )
    assert to_yaml(to_tree(state), "Written.\nBy hand.") == (
        "# Written.\n# By hand.\n"
        "topics:\n  a:\n    partitions: 1\n  b:\n    partitions: 2\n    replication_factor: 1\n    configs:\n"
        "      a: true\n      z: 1\n"
        "brokers:\n  default:\n    configs:\n      k: '0.5'\n"
        "  '9':\n    configs:\n      k: {file: word}\n  '10':\n    configs:\n      k: x\n"
    )


def test_a_password_is_rendered_as_an_environment_variable() -> None:
    tree = to_tree(ClusterState(users={"al.ice": {ScramMechanism.SCRAM_SHA_256: Credential(4096)}}))
    assert tree["users"]["al.ice"]["SCRAM-SHA-256"] == {
        "iterations": 4096,
        "password": {"env": "PASSWORD_AL_ICE"},
    }


def test_a_hidden_broker_value_is_rendered_as_an_environment_variable() -> None:
    tree = to_tree(ClusterState(brokers={"1": BrokerState({"ssl.keystore.password": KEPT_SECRET})}))
    assert tree["brokers"]["1"]["configs"] == {
        "ssl.keystore.password": {"env": "BROKER_1_SSL_KEYSTORE_PASSWORD"}
    }


def variables_of(*users: str, beside: ClusterState | None = None) -> dict[str, str]:
    """Return the environment variable of each user's password."""
    credentials = {ScramMechanism.SCRAM_SHA_256: Credential(4096)}
    users_section = to_tree(ClusterState(users=dict.fromkeys(users, credentials)), beside)["users"]
    return {user: users_section[user]["SCRAM-SHA-256"]["password"]["env"] for user in users}


def test_users_whose_variables_would_have_the_same_name_get_distinct_ones() -> None:
    found = variables_of("team-a", "team.a", "Team_A", "team-b")
    assert len(set(found.values())) == 4
    assert found.pop("team-b") == "PASSWORD_TEAM_B"
    assert all(re.fullmatch("PASSWORD_TEAM_A_x[0-9a-f]{8}", name) for name in found.values())


def test_the_variable_of_a_user_does_not_depend_on_which_others_would_have_the_same_name() -> None:
    first, second = variables_of("team-a", "team.a"), variables_of("other", "team-a", "Team_A")
    assert first["team-a"] == second["team-a"] == "PASSWORD_TEAM_A_xdef404c6"
    assert second["other"] == "PASSWORD_OTHER"


def test_a_variable_is_distinct_from_those_of_users_beside() -> None:
    beside = ClusterState(users={"team-a": {}})
    assert variables_of("team.a", beside=beside) == {"team.a": variables_of("team.a", "team-a")["team.a"]}
    assert variables_of("team-a", beside=beside) == {"team-a": "PASSWORD_TEAM_A"}


def test_hidden_broker_values_whose_variables_would_have_the_same_name_get_distinct_ones() -> None:
    keys = ("listener.name.a_b.ssl.key.password", "listener.name.a-b.ssl.key.password", "ssl.key.password")
    tree = to_tree(ClusterState(brokers={"1": BrokerState(dict.fromkeys(keys, KEPT_SECRET))}))
    names = [tree["brokers"]["1"]["configs"][key]["env"] for key in keys]
    assert len(set(names)) == 3
    assert names[2] == "BROKER_1_SSL_KEY_PASSWORD"
