"""Audit entries of every kind of change."""

import random

import pytest

from barnabas.base.ids import uuid_from_text
from barnabas.base.resource_names import HIDDEN
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.metadata.acls import ACLS, acl_key, decide_create_acls, decide_remove_acls
from barnabas.metadata.audit.changes import differences
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.configs import BROKER_CONFIGS, CONFIG_RECORD_TYPES, TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.delegation_tokens import Lifetimes, new_token
from barnabas.metadata.delegation_tokens import decide_create as decide_create_token
from barnabas.metadata.features import FINALIZED_FEATURES
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.quotas import QuotaAlteration, decide_alter, entity_of
from barnabas.metadata.registry import record_types
from barnabas.metadata.scram import ScramUpsertion, decide_add_user, decide_alter_credentials
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.metadata.trash import TrashEntry
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from support.images import RULES, broker, cluster, new_topic, replayed, with_topics

ORDERS = AclBinding(
    ResourceType.TOPIC,
    "ord",
    PatternType.PREFIXED,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)


def of(image: MetadataImage, decision: Decision[object]) -> list[Difference]:
    """Return the audited changes of a decision."""
    return list(differences(image, decision.changes))


def in_configs(image: MetadataImage, resource: Resource, **overrides: str) -> list[Difference]:
    """Return the changes when a resource gets exactly these configs; keys have underscores for dots."""
    values = {key.replace("_", "."): value for key, value in overrides.items()}
    record_type = CONFIG_RECORD_TYPES[resource.kind]
    change = record_type.put(resource.name, values) if values else record_type.remove(resource.name)
    return list(differences(image, (change,)))


#: Record types whose audit view needs an image with the topic; they are tested below.
PARTITIONS = "partition_states"


@pytest.mark.parametrize(
    "name", [name for name, record_type in record_types().items() if record_type.audit and name != PARTITIONS]
)
def test_creation_and_removal_of_each_audited_record_type_are_changes(name: str) -> None:
    image = rich_image()
    table = image.table(record_types()[name])
    assert table, f"the image of this test needs a row of {name}"
    for row, value in table.items():
        removed = list(differences(image, (StoreChange(f"{name}/{row}", None),)))
        made = list(differences(MetadataImage(), (record_types()[name].put(row, value),)))
        assert removed
        assert [each._replace(before=each.after, after=each.before) for each in made] == removed
        assert not list(differences(image, (record_types()[name].put(row, value),))), "nothing has changed"


def rich_image() -> MetadataImage:
    """Return a cluster with a row in every audited table."""
    image = cluster(1, new_topic("orders", configs={"retention.ms": "1"}))
    image = replayed(image, decide_create_acls(image.acls, [ORDERS]))
    image = replayed(
        image,
        decide_alter(
            image.quotas, [QuotaAlteration(entity_of({"user": None}), [("request_percentage", 5.0)])]
        ),
    )
    image = replayed(image, decide_add_user(image.scram_credentials, "alice", "secret", random.Random(1)))
    token = new_token("id", "User:alice", "User:alice", (), 0, Lifetimes(1_000, 1_000), {})
    image = replayed(image, decide_create_token(image.delegation_tokens, "key", token))
    image = with_topics(image, new_topic("first"), new_topic("clicks"))
    image = replayed(
        image, decide_delete(image, [TopicToDelete("clicks")], trash=TrashEntry(0, "User:alice"))
    )
    changes = [record_type.put("x", {"key": "value"}) for record_type in CONFIG_RECORD_TYPES.values()]
    return replayed(image, Decision(None, (*changes, FINALIZED_FEATURES.put("group.version", 1))))


def test_a_topic_is_audited_with_its_partitions_and_configs() -> None:
    image = cluster()
    configs = new_topic("orders", 2, configs={"retention.ms": "1"})
    decision = decide_create(image, [configs], RULES, random.Random(7), validate_only=False)
    found = {(each.resource, each.key): (each.before, each.after) for each in of(image, decision)}
    before, topic_id = found.pop(("topic/orders", "topic id"))
    assert before is None
    assert len(uuid_from_text(str(topic_id))) == 16
    assert found == {
        ("topic/orders", "partitions"): (None, 2),
        ("topic/orders", "replicas"): (None, [[1], [1]]),
        ("topic/orders", "retention.ms"): (None, "1"),
    }


def test_a_deleted_topic_is_audited_with_its_state_but_not_broker_internals() -> None:
    image = with_topics(cluster(), new_topic("orders", configs={"retention.ms": "1"}))
    decision = decide_delete(image, [TopicToDelete("orders")])
    assert {(each.key, each.after) for each in of(image, decision)} == {
        ("topic id", None),
        ("partitions", None),
        ("replicas", None),
        ("retention.ms", None),
    }


def test_only_changed_keys_are_audited() -> None:
    topic = Resource(ResourceKind.TOPIC, "orders")
    image = replayed(
        MetadataImage(), Decision(None, (TOPIC_CONFIGS.put("orders", {"a": "1", "b": "2", "c": "3"}),))
    )
    assert in_configs(image, topic, a="1", b="9", d="4") == [
        Difference("topic/orders", "b", "2", "9"),
        Difference("topic/orders", "c", "3", None),
        Difference("topic/orders", "d", None, "4"),
    ]


def test_a_changed_secret_is_audited_without_its_values() -> None:
    key = "listener.name.external.ssl.keystore.password"
    image = replayed(MetadataImage(), Decision(None, (BROKER_CONFIGS.put("1", {key: "old"}),)))
    change = BROKER_CONFIGS.put("1", {key: "new"})
    assert list(differences(image, (change,))) == [Difference("broker/1", key, HIDDEN, HIDDEN)]


def test_a_user_is_audited_without_its_keys() -> None:
    image = MetadataImage()
    upsertion = ScramUpsertion("alice", 1, 4096, b"salt", b"salted")
    [found] = of(image, decide_alter_credentials(image.scram_credentials, [upsertion]))
    assert found == Difference("user/alice", "SCRAM-SHA-256", None, {"iterations": 4096})


def test_a_new_password_is_audited_although_it_looks_the_same() -> None:
    first = decide_alter_credentials(
        MetadataImage().scram_credentials, [ScramUpsertion("a", 1, 4096, b"s", b"1")]
    )
    image = replayed(MetadataImage(), first)
    again = decide_alter_credentials(image.scram_credentials, [ScramUpsertion("a", 1, 4096, b"s", b"2")])
    assert [each.key for each in of(image, again)] == ["SCRAM-SHA-256"]


def test_an_acl_is_a_key_of_its_resource() -> None:
    image = replayed(MetadataImage(), decide_create_acls(MetadataImage().acls, [ORDERS]))
    [found] = of(image, decide_remove_acls(image.acls, [ORDERS]))
    assert (found.resource, found.key) == ("topic/ord*", "acl User:alice ALLOW READ from *")
    assert ACLS.from_plain(found.before) == ORDERS
    assert found.after is None
    assert acl_key(ORDERS) in image.acls


@pytest.mark.parametrize(
    ("parts", "resource"),
    [
        ({"user": "alice", "client-id": None}, "quota/client-id,user=alice"),
        ({"user": "a,b=c"}, "quota/user=a%2Cb%3Dc"),
        ({"ip": None}, "quota/ip"),
    ],
)
def test_quota_entities_have_unique_names(parts: dict[str, str | None], resource: str) -> None:
    key = "connection_creation_rate" if "ip" in parts else "request_percentage"
    decision = decide_alter(MetadataImage().quotas, [QuotaAlteration(entity_of(parts), [(key, 7.0)])])
    assert of(MetadataImage(), decision) == [Difference(resource, key, None, 7.0)]


def test_a_partition_is_audited_by_its_topic_name_while_that_exists() -> None:
    image = cluster(2, new_topic("orders", 1, 2))
    topic = image.topics["orders"]
    key = partition_key(topic.topic_id, 0)
    first, second = topic.assignments[0]
    change = PARTITION_STATES.put(key, PartitionRegistration(second, 1, (second,)))
    assert list(differences(image, (change,))) == [
        Difference("topic/orders", "partition 0 isr", [first, second], [second]),
        Difference("topic/orders", "partition 0 leader", first, second),
    ]
    assert not list(differences(MetadataImage(), (change,)))
    assert not list(differences(image, (PARTITION_STATES.remove(key),)))


def test_a_broker_that_returns_with_another_address_is_audited() -> None:
    image = cluster(1)
    moved = broker(1, rack="r2")
    assert [
        (each.key, each.after) for each in differences(image, (record_types()["brokers"].put("1", moved),))
    ] == [("rack", "r2")]
