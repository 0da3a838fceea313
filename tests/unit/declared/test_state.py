"""Names of resources, and filters on them."""

from barnabas.declared.state import BrokerState, ClusterState, ResourceFilter, Section, TopicState, name_of
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

ACL = AclBinding(
    ResourceType.TRANSACTIONAL_ID,
    "pay",
    PatternType.PREFIXED,
    "User:a",
    "*",
    AclOperation.WRITE,
    AclPermission.ALLOW,
)
STATE = ClusterState(
    topics={"orders": TopicState(), "clicks": TopicState()},
    acls=frozenset({ACL}),
    brokers={"1": BrokerState(), "": BrokerState()},
    prune=frozenset({"topics", "configs"}),
)


def test_resources_are_named_as_in_the_audit() -> None:
    assert name_of(Section.TOPICS, "orders") == "topic/orders"
    assert name_of(Section.ACLS, ACL) == "transactional-id/pay*"
    assert name_of(Section.QUOTAS, (("client-id", None), ("user", "a b"))) == "quota/client-id,user=a%20b"
    assert name_of(Section.USERS, "alice") == "user/alice"
    assert name_of(Section.GROUPS, "g") == "group/g"
    assert name_of(Section.BROKERS, "") == "broker/"
    assert name_of(Section.CLIENT_METRICS, "lag") == "client-metrics/lag"


def test_a_filter_selects_included_and_not_excluded_names() -> None:
    chosen = ResourceFilter(("topic/*", "broker/*"), ("topic/c*", "broker/1")).apply(STATE)
    assert (list(chosen.topics), chosen.acls, list(chosen.brokers)) == (["orders"], frozenset(), [""])
    assert chosen.prune == STATE.prune


def test_unselected_resources_are_not_pruned() -> None:
    assert ResourceFilter(sections=frozenset({Section.ACLS})).apply(STATE) == ClusterState(
        acls=STATE.acls, prune=frozenset({"configs"})
    )


def test_a_state_covers_sections_that_it_mentions_or_prunes() -> None:
    assert STATE.sections == {Section.TOPICS, Section.ACLS, Section.BROKERS}
    assert ClusterState(prune=frozenset({"users", "configs"})).sections == {Section.USERS}
