"""The order and batching of changes."""

from barnabas.declared.diff import diff_states
from barnabas.declared.executor import BATCH_WEIGHT, RequestKind, batches_of, tasks_of
from barnabas.declared.state import PRUNABLE, BrokerState, ClusterState, Credential, TopicState
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism

ORDERS = (ResourceType.TOPIC, "orders", PatternType.LITERAL)
ALLOWED = AclBinding(*ORDERS, "User:alice", "*", AclOperation.READ, AclPermission.ALLOW)
DENIED = ALLOWED._replace(permission=AclPermission.DENY)
OLD = ALLOWED._replace(principal="User:old")
CREDENTIALS = {ScramMechanism.SCRAM_SHA_256: Credential(4096)}

LIVE = ClusterState(
    topics={"old": TopicState(1), "grows": TopicState(1, 1, {"retention.ms": "1"})},
    acls=frozenset({OLD}),
    users={"old": CREDENTIALS},
)
DECLARED = ClusterState(
    topics={
        "grows": TopicState(2, 1, {"retention.ms": "2"}),
        "new": TopicState(1, 1, {"retention.ms": "2"}),
    },
    acls=frozenset({ALLOWED, DENIED}),
    quotas={(("user", "alice"),): {"producer_byte_rate": 1.0}},
    users={"alice": CREDENTIALS},
    groups={"g": {"k": "v"}},
    brokers={"": BrokerState({"k": "v"})},
    client_metrics={"m": {"k": "v"}},
    prune=frozenset(PRUNABLE),
)


def test_permissions_are_added_before_others_are_removed_and_deletions_are_last() -> None:
    tasks = tasks_of(diff_states(DECLARED, LIVE))
    assert [(each.kind, each.name) for each in tasks] == [
        (RequestKind.SET_CREDENTIALS, "alice"),
        (RequestKind.ALLOW, ALLOWED),
        (RequestKind.CONFIGURE_BROKERS, ""),
        (RequestKind.CREATE_TOPICS, "new"),
        (RequestKind.CREATE_PARTITIONS, "grows"),
        (RequestKind.CONFIGURE_TOPICS, "grows"),
        (RequestKind.CONFIGURE_GROUPS, "g"),
        (RequestKind.CONFIGURE_CLIENT_METRICS, "m"),
        (RequestKind.SET_QUOTAS, (("user", "alice"),)),
        (RequestKind.FORBID, DENIED),
        (RequestKind.REMOVE_ACLS, OLD),
        (RequestKind.REMOVE_CREDENTIALS, "old"),
        (RequestKind.DELETE_TOPICS, "old"),
    ]


def test_a_new_topic_is_created_with_its_configs() -> None:
    [task] = [
        each for each in tasks_of(diff_states(DECLARED, LIVE)) if each.kind is RequestKind.CREATE_TOPICS
    ]
    assert [each.key for each in task.changes] == ["partitions", "replication_factor", "retention.ms"]


def test_requests_are_limited_by_partitions() -> None:
    declared = ClusterState(
        topics={f"t{index:04}": TopicState(100) for index in range(12)} | {"u": TopicState(9000)}
    )
    batches = list(batches_of(tasks_of(diff_states(declared, ClusterState()))))
    assert [len(batch) for batch in batches] == [5, 5, 2, 1]
    assert BATCH_WEIGHT == 500


def test_a_request_has_tasks_of_one_phase() -> None:
    batches = list(batches_of(tasks_of(diff_states(DECLARED, LIVE))))
    assert all(len({task.kind for task in batch}) == 1 for batch in batches)
    assert sum(map(len, batches)) == 13
