"""Random declared states that are valid on any cluster."""

from hypothesis import strategies as st

from barnabas.declared.state import (
    BrokerState,
    ClusterState,
    Configs,
    Credential,
    Entity,
    SecretRef,
    TopicState,
)
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism

names = st.sampled_from(["orders", "clicks", "team-a.x", "9", "yes", "0x1f", "null", "ünlich: #1", "orders*"])
topic_names = st.sampled_from(["orders", "clicks", "team-a.x", "9", "null"])

topic_configs: st.SearchStrategy[Configs] = st.fixed_dictionaries(
    {},
    optional={
        "retention.ms": st.sampled_from(["-1", "1000", "86400000"]),
        "cleanup.policy": st.sampled_from(["compact", "delete", "compact,delete"]),
        "min.cleanable.dirty.ratio": st.sampled_from(["0.25", "0.5"]),
        "preallocate": st.sampled_from(["true", "false"]),
        "compression.type": st.sampled_from(["producer", "lz4"]),
    },
)
topics = st.builds(TopicState, st.integers(1, 4), st.just(1), topic_configs)
resources = st.one_of(
    st.tuples(
        st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID]),
        names,
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.just((ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)),
)
operations = st.sampled_from([AclOperation.DESCRIBE, AclOperation.ALL])
acls: st.SearchStrategy[AclBinding] = st.builds(
    lambda resource, *rest: AclBinding(*resource, *rest),
    resources,
    st.sampled_from(["User:alice", "User:bob"]),
    st.sampled_from(["*", "10.0.0.1"]),
    operations,
    st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
)
entities: st.SearchStrategy[Entity] = st.sampled_from(
    [
        (("user", "alice"),),
        (("user", None),),
        (("client-id", "c"), ("user", "bob, the second")),
        (("client-id", None),),
    ]
)
quotas = st.dictionaries(
    st.sampled_from(["producer_byte_rate", "consumer_byte_rate"]),
    st.sampled_from([1024.0, 1e9]),
    min_size=1,
)
credentials = st.dictionaries(
    st.sampled_from(ScramMechanism),
    st.builds(Credential, st.sampled_from([4096, 4097]), st.just(SecretRef("env", "WORD"))),
    min_size=1,
)
groups: st.SearchStrategy[Configs] = st.fixed_dictionaries(
    {"consumer.session.timeout.ms": st.sampled_from(["46000", "50000"])}
)
metrics: st.SearchStrategy[Configs] = st.fixed_dictionaries(
    {"interval.ms": st.sampled_from(["1000", "2000"])}
)
broker_configs: st.SearchStrategy[Configs] = st.fixed_dictionaries(
    {"log.retention.ms": st.sampled_from(["172800000", "86400000"])}
)


def states(prune: frozenset[str] = frozenset()) -> st.SearchStrategy[ClusterState]:
    """Generate states with a few resources of each section."""
    return st.builds(
        ClusterState,
        st.dictionaries(topic_names, topics, max_size=4),
        st.frozensets(acls, max_size=4),
        st.dictionaries(entities, quotas, max_size=2),
        st.dictionaries(st.sampled_from(["alice", "bob"]), credentials, max_size=2),
        st.dictionaries(st.sampled_from(["billing", "g 2"]), groups, max_size=2),
        st.dictionaries(st.just(""), st.builds(BrokerState, broker_configs), max_size=1),
        st.dictionaries(st.sampled_from(["lag", "cpu"]), metrics, max_size=2),
        st.just(prune),
    )
