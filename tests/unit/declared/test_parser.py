"""Parsing of declared states, and errors in them."""

import pickle
from pathlib import Path

import pytest

from barnabas.declared.parser import StateFileError, read_state
from barnabas.declared.state import BrokerState, ClusterState, Credential, SecretRef, TopicState
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism

EVERYTHING = """
prune: [topics, configs]
topics:
  orders:
    partitions: 12
    replication_factor: 3
    configs: {retention.ms: 1000, cleanup.policy: [compact, delete], preallocate: True, segment.ms: null, x: '010'}
  bare:
acls:
  - {principal: "User:alice", resource_type: topic, resource_name: ord, pattern_type: prefixed, operations: [read, all]}
  - {principal: "User:bob", host: 10.0.0.1, resource_type: cluster, operations: [alter], permission: deny}
quotas:
  - entity: {user: alice, client-id: null}
    values: {producer_byte_rate: 5, request_percentage: null}
users:
  alice: {SCRAM-SHA-256: {iterations: 8192, password: {env: WORD}}, SCRAM-SHA-512: {}}
groups: {billing: {configs: {consumer.session.timeout.ms: 50000}}}
brokers:
  default: {configs: {log.retention.ms: 5}}
  1: {configs: {ssl.keystore.password: {file: word}}, expect: {num.io.threads: 8}}
client_metrics: {lag: {configs: {interval.ms: 1000}}}
"""


def read(tmp_path: Path, text: str) -> ClusterState:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    return read_state(file)


def test_everything_that_can_be_declared_is_parsed(tmp_path: Path) -> None:
    state = read(tmp_path, EVERYTHING)
    configs = {"retention.ms": "1000", "cleanup.policy": "compact,delete", "preallocate": "true"}
    assert state.topics == {
        "orders": TopicState(12, 3, {**configs, "segment.ms": None, "x": "010"}),
        "bare": TopicState(),
    }
    alice = (ResourceType.TOPIC, "ord", PatternType.PREFIXED, "User:alice", "*")
    bob = (ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:bob", "10.0.0.1")
    assert state.acls == {
        AclBinding(*alice, AclOperation.READ, AclPermission.ALLOW),
        AclBinding(*alice, AclOperation.ALL, AclPermission.ALLOW),
        AclBinding(*bob, AclOperation.ALTER, AclPermission.DENY),
    }
    entity = (("client-id", None), ("user", "alice"))
    assert state.quotas == {entity: {"producer_byte_rate": 5.0, "request_percentage": None}}
    assert state.users == {
        "alice": {
            ScramMechanism.SCRAM_SHA_256: Credential(8192, SecretRef("env", "WORD")),
            ScramMechanism.SCRAM_SHA_512: Credential(),
        }
    }
    assert state.groups == {"billing": {"consumer.session.timeout.ms": "50000"}}
    assert state.brokers == {
        "": BrokerState({"log.retention.ms": "5"}),
        "1": BrokerState({"ssl.keystore.password": SecretRef("file", "word")}, {"num.io.threads": "8"}),
    }
    assert state.client_metrics == {"lag": {"interval.ms": "1000"}}
    assert state.prune == {"topics", "configs"}


ACL = "acls:\n  - "
ALICE = "principal: User:alice, "


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("topic: {}", "line 1: unknown key 'topic' in the file; did you mean topics?"),
        ("topics: [orders]", "line 1: topics is a list: must be a mapping"),
        ("topics:\n  a: {partition: 1}", "line 2: unknown key 'partition' in topics.a; did you mean part"),
        ("topics:\n  a: {partitions: 0}", "line 2: topics.a.partitions is '0': must be a whole number"),
        ("topics:\n  a: {}\n  a: {}", "line 3: a key of topics is 'a': is repeated, first in line 2"),
        ("topics: {a: {configs: {k: [{}]}}}", "line 1: topics.a.configs.k[0] is a mapping: must be text"),
        ("topics: {a: {configs: {k: {vault: x}}}}", "topics.a.configs.k: must be {env: NAME} or {file: PATH}, which"),
        ("topics: {a: {configs: {k: {}}}}", "topics.a.configs.k: must be {env: NAME} or {file: PATH}, which"),
        ("prune: [topic]", "line 1: prune[0] is 'topic': must be topics, acls, quotas, "),
        (ACL + "{resource_type: topic}", "line 2: acls[0] is a mapping: must have principal"),
        (ACL + "{principal: alice, resource_type: cluster, operations: [all]}", "acls[0].principal is 'alice': must"),
        (ACL + f"{{{ALICE}resource_type: tpoic, operations: [all]}}", "acls[0].resource_type is 'tpoic': must be "),
        (ACL + f"{{{ALICE}resource_type: topic, operations: [all]}}", "acls[0] is a mapping: must have resource_name"),
        (ACL + f"{{{ALICE}resource_type: cluster, operations: [any]}}", "acls[0].operations[0] is 'any': must be "),
        ("quotas: [{entity: {}, values: {}}]", "quotas[0].entity is a mapping: must name user, client-id, both"),
        ("quotas: [{entity: {ip: a, user: b}, values: {}}]", "quotas[0].entity is a mapping: must name user"),
        ("quotas: [{entity: {user: b}}]", "quotas[0] is a mapping: must have values"),
        ("quotas: [{entity: {user: b}, values: {x: y}}]", "values.x is 'y': must be a plain number such as 1000000"),
        ("quotas:" + 2 * "\n  - {entity: {ip: a}, values: {}}", "line 3: quotas[1].entity is a mapping: is repeated"),
        ("users: {a: {}}", "users.a is a mapping: must contain a mechanism: SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("users: {a: {SCRAM-SHA-256: {iterations: 5}}}", "is '5': must be a whole number from 4096 to 16384"),
        ("users: {a: {SCRAM-SHA-256: {iterations: 99999}}}", "'99999': must be a whole number from 4096 to 16384"),
        ("topics: {a: {partitions: 2147483648}}", "must be a whole number from 1 to 2147483647"),
        ("topics: {a: {replication_factor: 32768}}", "must be a whole number from 1 to 32767"),
        ("topics: {a: {configs: {k: " + "[" * 3000, "is nested too deeply"),
        ('topics: {"\\ud800": {}}', r"a key of topics is '\ud800': contains an unpaired surrogate"),
        ('topics: {a: {configs: {k: "\\udc00"}}}', r"topics.a.configs.k is '\udc00': contains an unpaired surrogate"),
        (ACL + f"{{{ALICE}resource_type: topic, resource_name: '', operations: [all]}}", "must be the name of a "),
        (ACL + f"{{{ALICE}resource_type: cluster, resource_name: a, operations: [all]}}", "must be kafka-cluster, or"),
        ("brokers: {01: {}}", "a key of brokers is '01': must be a broker's id"),
        ("brokers: {one: {}}", "a key of brokers is 'one': must be a broker's id, or default for every"),
        ("brokers: {default: {expect: {}}}", "brokers.default.expect is a mapping: applies to a single broker"),
        ("brokers: {1: {expect: {k: {env: x}}}}", "brokers.1.expect.k is a mapping: must be text, a number"),
    ],
)  # fmt: skip
def test_an_error_has_file_line_key_value_and_valid_values(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(StateFileError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'cluster.yaml'}: ")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("users: {a: {SCRAM-SHA-256: {password: hunter2}}}", "users.a.SCRAM-SHA-256.password: must be {env: NAME} or"),
        ("users: {a: {SCRAM-SHA-256: {password: {hunter2}}}}", "SCRAM-SHA-256.password: must be {env: NAME} or"),
        ("users: {a: {SCRAM-SHA-256: hunter2}}", "users.a.SCRAM-SHA-256: must be a mapping (key: value) of iterations"),
        ("users: {a: {SCRAM-SHA-256: {password: {env: A}, password: hunter2}}}", "'password': is repeated, first in"),
        ("users: {a: hunter2}", "users.a: must be a mapping (key: value) of SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("brokers: {1: {configs: {ssl.keystore.password: hunter2}}}", "ssl.keystore.password: must be {env: NAME} or"),
        ('brokers: {1: {configs: {ssl.keystore.password: "hunter2\\ud800"}}}', "password: must be {env: NAME} or"),
        ("brokers: {1: {configs: {listener.name.x.ssl.key.password: hunter2}}}", "which say where the secret is"),
    ],
)  # fmt: skip
def test_a_plaintext_secret_is_rejected_without_being_repeated(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(StateFileError) as error:
        read(tmp_path, text)
    assert says in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_state_can_be_sent_to_another_process(tmp_path: Path) -> None:
    state = read(tmp_path, "topics: {a: }\ngroups: {b: {}}\nbrokers: {1: {}}\nclient_metrics: {c: {}}")
    assert pickle.loads(pickle.dumps(state)) == state
