"""Rollbacks: what they restore, what they leave, and what prevents them."""

import random
from dataclasses import replace

import pytest

from barnabas.base.clock import ManualClock
from barnabas.config.config_resource import Resource
from barnabas.metadata.acls import ACLS, acl_key, decide_create_acls, decide_remove_acls, matching
from barnabas.metadata.audit.auditor import Auditor
from barnabas.metadata.audit.history import decide_expire_history, decide_keep_history
from barnabas.metadata.audit.records import Actor
from barnabas.metadata.audit.rollback import RollbackRules, RolledBack, decide_rollback
from barnabas.metadata.configs import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, AlterationRules, Overrides
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.quotas import QuotaAlteration, decide_alter, entity_key, entity_of
from barnabas.metadata.scram import SCRAM_CREDENTIALS, Credentials, ScramCredential
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import TOPICS
from barnabas.wire.acls import AclBinding, AclFilter, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import ScramMechanism
from support.images import cluster, new_topic, replayed, with_topics

ALICE = Actor("User:alice", "client", "10.0.0.1", "RollbackResource")
ENTITY = entity_of({"user": "alice"})


def check(resource: Resource, existing: Overrides, requested: Overrides) -> None:
    if "bad" in requested:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "bad is not allowed any more")


def refuse_acl(binding: AclBinding) -> None:
    raise KafkaError(ErrorCode.POLICY_VIOLATION, "rule 'no acls' says no")


def everything(_: object) -> None:
    pass


RULES = RollbackRules(AlterationRules(lambda resource, key: None, check), everything, everything, everything)


def binding(principal: str) -> AclBinding:
    pattern = (PatternType.LITERAL, principal, "*", AclOperation.READ, AclPermission.ALLOW)
    return AclBinding(ResourceType.TOPIC, "orders", *pattern)


class World:
    """A cluster with a history and topic orders."""

    def __init__(self) -> None:
        self.auditor = Auditor(ManualClock(), random.Random(1))
        self.image = with_topics(
            replayed(image := cluster(1), decide_keep_history(image, enabled=True)), new_topic("orders")
        )

    def commit(self, decision: Decision[object], actor: Actor | None = None) -> int:
        self.image = replayed(self.image, self.auditor.with_audit_record(self.image, decision, actor))
        return self.image.revision

    def change(self, *changes: StoreChange) -> int:
        return self.commit(Decision(None, changes))

    def configs(self, **overrides: str) -> int:
        return self.change(TOPIC_CONFIGS.put("orders", overrides))

    def roll_back(
        self, revision: int, resource: str = "topic/orders", rules: RollbackRules = RULES
    ) -> RolledBack:
        decision = decide_rollback(self.image, resource, revision, rules, validate_only=False)
        self.commit(decision, ALICE)
        return decision.response

    def refused(
        self, revision: int, resource: str = "topic/orders", rules: RollbackRules = RULES
    ) -> KafkaError:
        with pytest.raises(KafkaError) as caught:
            decide_rollback(self.image, resource, revision, rules, validate_only=False)
        return caught.value


@pytest.fixture
def world() -> World:
    return World()


def plain(outcome: RolledBack) -> list[tuple[str, object, object]]:
    return [(each.key, each.before, each.after) for each in outcome.differences]


def test_configs_are_restored_with_a_change_per_key(world: World) -> None:
    first = world.configs(a="1", b="2")
    world.configs(b="3", c="4")
    assert plain(world.roll_back(first)) == [("a", None, "1"), ("b", "3", "2"), ("c", "4", None)]
    assert world.image.topic_configs["orders"] == {"a": "1", "b": "2"}


def test_a_rollback_is_one_audit_record_and_can_be_rolled_back(world: World) -> None:
    first = world.configs(a="1")
    second = world.configs(a="2")
    world.roll_back(first)
    [record] = world.image.audit.values()
    assert (record.actor, len(record.differences)) == (ALICE, 1)
    world.roll_back(second)
    assert world.image.topic_configs["orders"] == {"a": "2"}


def test_deleted_configs_are_restored(world: World) -> None:
    first = world.configs(a="1")
    nothing = world.change(TOPIC_CONFIGS.remove("orders"))
    world.roll_back(first)
    assert world.image.topic_configs["orders"] == {"a": "1"}
    world.roll_back(nothing)
    assert "orders" not in world.image.topic_configs


def test_an_unchanged_resource_has_no_changes(world: World) -> None:
    first = world.configs(a="1")
    world.configs(a="2")
    world.configs(a="1")
    assert world.roll_back(first) == RolledBack()


def test_validate_only_returns_the_same_and_changes_nothing(world: World) -> None:
    first = world.configs(a="1")
    world.configs(a="2")
    decision = decide_rollback(world.image, "topic/orders", first, RULES, validate_only=True)
    assert plain(decision.response) == [("a", "2", "1")]
    assert not decision.changes


def test_acls_are_restored_and_removed_with_the_configs_in_one_change(world: World) -> None:
    world.commit(decide_create_acls(world.image.acls, [binding("User:alice"), binding("User:bob")]))
    first = world.configs(a="1")
    world.commit(
        decide_remove_acls(world.image.acls, matching(world.image.acls, AclFilter(principal="User:bob")))
    )
    world.commit(decide_create_acls(world.image.acls, [binding("User:eve")]))
    world.configs(a="2")
    before = world.image.revision
    outcome = world.roll_back(first)
    assert world.image.revision == before + 1
    assert {each.principal for each in world.image.acls.values()} == {"User:alice", "User:bob"}
    assert {key for key, _, _ in plain(outcome)} == {
        "a",
        "acl User:bob ALLOW READ from *",
        "acl User:eve ALLOW READ from *",
    }


def test_acls_of_other_resources_are_kept(world: World) -> None:
    first = world.configs(a="1")
    other = binding("User:alice")._replace(resource_name="ord", pattern_type=PatternType.PREFIXED)
    world.commit(decide_create_acls(world.image.acls, [other]))
    assert world.roll_back(first) == RolledBack()
    assert plain(world.roll_back(first, "topic/ord*"))
    assert not world.image.acls


def test_a_policy_violation_by_an_acl_rejects_the_whole_rollback(world: World) -> None:
    world.commit(decide_create_acls(world.image.acls, [binding("User:alice")]))
    first = world.configs(a="1")
    world.change(ACLS.remove(acl_key(binding("User:alice"))))
    world.configs(a="2")
    rules = RollbackRules(RULES.configs, refuse_acl, everything, everything)
    error = world.refused(first, rules=rules)
    assert (error.code, "no acls" in error.message) == (ErrorCode.POLICY_VIOLATION, True)


def test_configs_that_are_no_longer_valid_are_not_restored(world: World) -> None:
    first = world.configs(bad="1")
    world.configs(good="1")
    assert world.refused(first).code is ErrorCode.INVALID_CONFIG


def test_without_permission_for_a_part_nothing_changes(world: World) -> None:
    world.commit(decide_create_acls(world.image.acls, [binding("User:alice")]))
    first = world.image.revision
    world.change(ACLS.remove(acl_key(binding("User:alice"))))
    asked: list[frozenset[str]] = []

    def authorize(record_types: frozenset[str]) -> None:
        asked.append(record_types)
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    rules = RollbackRules(RULES.configs, everything, everything, authorize)
    assert world.refused(first, rules=rules).code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert asked == [{"acls"}]


def quota(image: MetadataImage, **values: float | None) -> Decision[object]:
    operations = list(values.items())
    decision: Decision[object] = decide_alter(image.quotas, [QuotaAlteration(ENTITY, operations)])  # type: ignore[assignment]
    return decision


def test_quotas_are_restored_and_removed(world: World) -> None:
    nothing = world.image.revision
    first = world.commit(quota(world.image, producer_byte_rate=1000.0, request_percentage=50.0))
    world.commit(quota(world.image, producer_byte_rate=5.0, request_percentage=None))
    world.roll_back(first, "quota/user=alice")
    row = entity_key(ENTITY)
    assert world.image.quotas[row].values == {"producer_byte_rate": 1000.0, "request_percentage": 50.0}
    world.roll_back(nothing, "quota/user=alice")
    assert row not in world.image.quotas


def credentials(password: str) -> Credentials:
    mechanism = ScramMechanism.SCRAM_SHA_256
    return {mechanism: ScramCredential.of_password(mechanism, password, b"0123456789abcdef")}


def test_a_former_password_is_valid_again_and_hidden(world: World) -> None:
    first = world.change(SCRAM_CREDENTIALS.put("alice", credentials("first")))
    second = world.change(SCRAM_CREDENTIALS.put("alice", credentials("second")))
    outcome = world.roll_back(first, "user/alice")
    assert world.image.scram_credentials["alice"] == credentials("first")
    assert plain(outcome) == [("SCRAM-SHA-256", {"iterations": 4096}, {"iterations": 4096})]
    gone = world.change(SCRAM_CREDENTIALS.remove("alice"))
    world.roll_back(second, "user/alice")
    assert world.image.scram_credentials["alice"] == credentials("second")
    world.roll_back(gone, "user/alice")
    assert "alice" not in world.image.scram_credentials


def test_secrets_of_a_broker_are_restored_and_hidden(world: World) -> None:
    key = "listener.name.sasl.plain.sasl.jaas.config"
    first = world.change(BROKER_CONFIGS.put("1", {key: "old secret"}))
    world.change(BROKER_CONFIGS.put("1", {key: "new secret"}))
    outcome = world.roll_back(first, "broker/1")
    assert world.image.broker_configs["1"] == {key: "old secret"}
    assert plain(outcome) == [(key, "(hidden)", "(hidden)")]


def test_groups_and_broker_defaults_have_a_history(world: World) -> None:
    first = world.change(GROUP_CONFIGS.put("g", {"a": "1"}), BROKER_CONFIGS.put("", {"a": "1"}))
    world.change(GROUP_CONFIGS.put("g", {"a": "2"}), BROKER_CONFIGS.put("", {"a": "2"}))
    world.roll_back(first, "group/g")
    world.roll_back(first, "broker/")
    assert world.image.group_configs["g"] == world.image.broker_configs[""] == {"a": "1"}


def test_added_partitions_are_kept_and_reported(world: World) -> None:
    first = world.configs(a="1")
    grow(world, 3)
    world.configs(a="2")
    outcome = world.roll_back(first)
    assert outcome.notes == (
        f"Topic 'orders' has 3 partitions, at revision {first} it had 1: partitions cannot be removed.",
    )
    assert world.image.topic_configs["orders"] == {"a": "1"}


def grow(world: World, count: int) -> None:
    topic = world.image.topics["orders"]
    world.change(TOPICS.put("orders", replace(topic, assignments=((1,),) * count)))


def test_a_deleted_topic_cannot_be_rolled_back(world: World) -> None:
    first = world.configs(a="1")
    world.commit(decide_delete(world.image, [TopicToDelete("orders")]))
    error = world.refused(first)
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "has been deleted since" in error.message


def test_a_recreated_topic_gets_the_former_topics_configs_and_that_is_reported(world: World) -> None:
    first = world.configs(a="1")
    world.commit(decide_delete(world.image, [TopicToDelete("orders")]))
    between = world.image.revision
    world.image = with_topics(world.image, new_topic("other"), new_topic("orders"))
    assert "Topic 'orders' did not exist at revision" in world.refused(between).message
    assert "another topic" in world.roll_back(first).notes[0]
    assert world.image.topic_configs["orders"] == {"a": "1"}


@pytest.mark.parametrize(("offset", "words"), [(1, "does not exist yet"), (-100, "no longer in the history")])
def test_an_unknown_revision_is_rejected(world: World, offset: int, words: str) -> None:
    error = world.refused(world.image.revision + offset)
    assert (error.code, words in error.message) == (ErrorCode.INVALID_REQUEST, True)


def test_an_expired_revision_is_unknown(world: World) -> None:
    first = world.configs(a="1")
    second = world.configs(a="2")
    world.configs(a="3")
    world.commit(decide_expire_history(world.image, None, count_max=1))
    assert f"begins with revision {second}" in world.refused(first).message
    world.roll_back(second)


def test_without_a_history_nothing_can_be_rolled_back(world: World) -> None:
    first = world.configs(a="1")
    world.commit(decide_keep_history(world.image, enabled=False))
    assert "barnabas.audit.enable" in world.refused(first).message


@pytest.mark.parametrize("resource", ["user/nobody", "quota/user=nobody", "group/nope"])
def test_a_resource_without_history_is_not_found(world: World, resource: str) -> None:
    assert world.refused(world.image.revision, resource).code is ErrorCode.RESOURCE_NOT_FOUND


def test_acls_of_a_topic_that_never_existed_are_restored(world: World) -> None:
    absent = binding("User:alice")._replace(resource_name="absent")
    world.commit(decide_create_acls(world.image.acls, [absent]))
    first = world.image.revision
    world.change(ACLS.remove(acl_key(absent)))
    world.roll_back(first, "topic/absent")
    assert list(world.image.acls.values()) == [absent]
