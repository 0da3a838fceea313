"""The order and batching of changes."""

from barnabas.declared.diff import differences
from barnabas.declared.executor import BATCH_WEIGHT, Order, batches_of, tasks_of
from barnabas.declared.state import PRUNABLE, Credential, DeclaredBroker, DeclaredState, DeclaredTopic
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism

ORDERS = (ResourceType.TOPIC, "orders", PatternType.LITERAL)
ALLOWED = AclBinding(*ORDERS, "User:alice", "*", AclOperation.READ, AclPermission.ALLOW)
DENIED = ALLOWED._replace(permission=AclPermission.DENY)
OLD = ALLOWED._replace(principal="User:old")
CREDENTIALS = {ScramMechanism.SCRAM_SHA_256: Credential(4096)}

LIVE = DeclaredState(
    topics={"old": DeclaredTopic(1), "grows": DeclaredTopic(1, 1, {"retention.ms": "1"})},
    acls=frozenset({OLD}),
    users={"old": CREDENTIALS},
)
DECLARED = DeclaredState(
    topics={
        "grows": DeclaredTopic(2, 1, {"retention.ms": "2"}),
        "new": DeclaredTopic(1, 1, {"retention.ms": "2"}),
    },
    acls=frozenset({ALLOWED, DENIED}),
    quotas={(("user", "alice"),): {"producer_byte_rate": 1.0}},
    users={"alice": CREDENTIALS},
    groups={"g": {"k": "v"}},
    brokers={"": DeclaredBroker({"k": "v"})},
    client_metrics={"m": {"k": "v"}},
    prune=frozenset(PRUNABLE),
)


def test_permissions_are_added_before_others_are_removed_and_deletions_are_last() -> None:
    tasks = tasks_of(differences(DECLARED, LIVE))
    assert [(each.order, each.name) for each in tasks] == [
        (Order.SET_CREDENTIALS, "alice"),
        (Order.ALLOW, ALLOWED),
        (Order.CONFIGURE_BROKERS, ""),
        (Order.CREATE_TOPICS, "new"),
        (Order.CREATE_PARTITIONS, "grows"),
        (Order.CONFIGURE_TOPICS, "grows"),
        (Order.CONFIGURE_GROUPS, "g"),
        (Order.CONFIGURE_CLIENT_METRICS, "m"),
        (Order.SET_QUOTAS, (("user", "alice"),)),
        (Order.FORBID, DENIED),
        (Order.REMOVE_ACLS, OLD),
        (Order.REMOVE_CREDENTIALS, "old"),
        (Order.DELETE_TOPICS, "old"),
    ]


def test_a_new_topic_is_created_with_its_configs() -> None:
    [task] = [each for each in tasks_of(differences(DECLARED, LIVE)) if each.order is Order.CREATE_TOPICS]
    assert [each.key for each in task.changes] == ["partitions", "replication_factor", "retention.ms"]


def test_requests_are_limited_by_partitions() -> None:
    declared = DeclaredState(
        topics={f"t{index:04}": DeclaredTopic(100) for index in range(12)} | {"u": DeclaredTopic(9000)}
    )
    batches = list(batches_of(tasks_of(differences(declared, DeclaredState()))))
    assert [len(batch) for batch in batches] == [5, 5, 2, 1]
    assert BATCH_WEIGHT == 500


def test_a_request_has_tasks_of_one_phase() -> None:
    batches = list(batches_of(tasks_of(differences(DECLARED, LIVE))))
    assert all(len({task.order for task in batch}) == 1 for batch in batches)
    assert sum(map(len, batches)) == 13
