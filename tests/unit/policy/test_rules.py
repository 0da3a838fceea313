import re
from collections.abc import Iterable

import pytest

from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.policy import AlterConfigPolicy, ConfigResource, ConfigResourceType, CreateTopicPolicy
from barnabas.policy.rules import (
    UNLIMITED_KEYS,
    AclAction,
    AclRule,
    Bounds,
    ConfigRule,
    ProtectedAction,
    Rule,
    Rules,
    Violation,
)
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from support.policies import altered_topic, new_topic


def topic_rules(*rules: Rule) -> Rules:
    return Rules({ConfigResourceType.TOPIC: rules})


def messages(violations: Iterable[Violation]) -> list[str]:
    return [violation.message for violation in violations]


def acl(
    name: str = "t",
    pattern_type: PatternType = PatternType.LITERAL,
    principal: str = "User:a",
    operation: AclOperation = AclOperation.READ,
    resource_type: ResourceType = ResourceType.TOPIC,
) -> AclBinding:
    return AclBinding(resource_type, name, pattern_type, principal, "*", operation, AclPermission.ALLOW)


def test_names_must_match_completely() -> None:
    rules = topic_rules(Rule(pattern=re.compile("[a-z]+")))
    assert rules.violations_of_creation(new_topic("abc")) == []
    assert messages(rules.violations_of_creation(new_topic("abc1"))) == [
        "Topic name 'abc1' must match [a-z]+"
    ]


@pytest.mark.parametrize(("count", "says"), [(1, ["at least 2"]), (2, []), (4, []), (5, ["at most 4"])])
def test_counts_have_limits(count: int, says: list[str]) -> None:
    bounds = Bounds(2, 4)
    for rules, new in (
        (topic_rules(Rule(partitions=bounds)), new_topic("t", partitions=count)),
        (topic_rules(Rule(replication_factor=bounds)), new_topic("t", factor=count)),
    ):
        found = messages(rules.violations_of_creation(new))
        assert len(found) == len(says)
        assert all(
            words in message and f"has {count} " in message
            for words, message in zip(says, found, strict=True)
        )


def test_manual_assignments_are_counted() -> None:
    rules = topic_rules(Rule(partitions=Bounds(max=1), replication_factor=Bounds(max=1)))
    new = CreateTopicPolicy.RequestMetadata("t", None, None, {0: [1], 1: [1, 2]}, {})
    assert messages(rules.violations_of_creation(new)) == [
        "Topic 't' has 2 partitions: it must be at most 1",
        "Topic 't' has 2 replicas: it must be at most 1",
    ]


def test_the_longest_prefix_applies_for_each_setting() -> None:
    rules = topic_rules(
        Rule(
            partitions=Bounds(max=3),
            configs={"a": ConfigRule(required=True), "b": ConfigRule(forbidden=True)},
        ),
        Rule("big.", partitions=Bounds(max=30), configs={"b": ConfigRule()}),
        Rule("big.ger.", configs={"a": ConfigRule()}),
    )
    assert len(rules.violations_of_creation(new_topic("t", 4))) == 2
    assert messages(rules.violations_of_creation(new_topic("big.t", 30, configs={"b": "1"}))) == [
        "a of topic 'big.t' must be set"
    ]
    assert rules.violations_of_creation(new_topic("big.ger.t", 30, configs={"b": "1"})) == []
    assert len(rules.violations_of_creation(new_topic("big.ger.t", 31))) == 1


@pytest.mark.parametrize(
    ("rule", "key", "value", "says"),
    [
        (ConfigRule(forbidden=True), "k", "1", "must not be set"),
        (ConfigRule(bounds=Bounds(5, 9)), "k", "4", "must be at least 5"),
        (ConfigRule(bounds=Bounds(5, 9)), "k", "10", "must be at most 9"),
        (ConfigRule(bounds=Bounds(5, 9)), "k", "5", ""),
        (ConfigRule(bounds=Bounds(0.1, 0.5)), "k", "0.75", "must be at most 0.5"),
        (ConfigRule(bounds=Bounds(max=9)), "k", "many", "must be a number"),
        (ConfigRule(bounds=Bounds(max=9)), "k", "-1", ""),
        (ConfigRule(bounds=Bounds(max=9)), "retention.ms", "-1", "must be at most 9"),
        (ConfigRule(bounds=Bounds(min=9)), "retention.bytes", "-1", ""),
        (ConfigRule(bounds=Bounds(max=9)), "retention.bytes", "-2", "must be at most 9"),
        (ConfigRule(bounds=Bounds(max=9)), "log.retention.ms", "-1", "must be at most 9"),
        (ConfigRule(bounds=Bounds(max=9)), "log.local.retention.ms", "-1", "must be at most 9"),
        (ConfigRule(bounds=Bounds(max=9)), "log.local.retention.ms", "-2", ""),
        (ConfigRule(values=("a", "b")), "k", "b, a", ""),
        (ConfigRule(values=("a", "b")), "k", "c", "must be a or b"),
        (ConfigRule(required=True), "k", "", ""),
    ],
)
def test_config_values_are_checked(rule: ConfigRule, key: str, value: str, says: str) -> None:
    assert rule.violation_reason(key, value) == says


def test_keys_whose_description_names_a_value_without_limit_are_known() -> None:
    words = re.compile("(no|without) limit|a negative value keeps")
    keys = [*TOPIC_KEYS.values(), *BROKER_KEYS.values(), *GROUP_KEYS.values(), *CLIENT_METRICS_KEYS.values()]
    described = {key.name for key in keys if words.search(key.description)}
    assert {"retention.ms", "log.retention.bytes"} <= described <= UNLIMITED_KEYS


def test_a_required_config_must_be_set_and_kept() -> None:
    rules = topic_rules(Rule(configs={"retention.ms": ConfigRule(required=True)}))
    must = ["retention.ms of topic 't' must be set"]
    assert messages(rules.violations_of_creation(new_topic("t"))) == must
    assert rules.violations_of_creation(new_topic("t", configs={"retention.ms": "1"})) == []
    assert messages(rules.violations_of_alteration(altered_topic("t", retention_ms=None))) == must
    assert messages(rules.violations_of_alteration(altered_topic("t"), removed=["retention.ms"])) == must
    assert rules.violations_of_alteration(altered_topic("t", segment_ms="1"), removed=["segment.bytes"]) == []


def test_altered_configs_are_checked_like_new_ones() -> None:
    rules = topic_rules(Rule("t", configs={"retention.ms": ConfigRule(bounds=Bounds(max=5))}))
    [message] = messages(rules.violations_of_alteration(altered_topic("t1", retention_ms="6")))
    assert message == "retention.ms of topic 't1' is '6': it must be at most 5"
    assert rules.violations_of_alteration(altered_topic("u", retention_ms="6")) == []


def test_a_forbidden_config_may_be_deleted() -> None:
    rules = topic_rules(Rule(configs={"retention.ms": ConfigRule(forbidden=True)}))
    assert rules.violations_of_alteration(altered_topic("t", retention_ms=None)) == []


@pytest.mark.parametrize("key", ["ssl.key.password", "listener.name.tls.ssl.key.password", "unknown"])
@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (ConfigRule(forbidden=True), "must not be set"),
        (ConfigRule(values=("hunter2", "hunter3")), "must be an allowed value"),
        (ConfigRule(bounds=Bounds(max=9)), "must be a number"),
    ],
)
def test_a_message_has_no_values_of_a_sensitive_key(key: str, rule: ConfigRule, says: str) -> None:
    rules = Rules({ConfigResourceType.BROKER: [Rule(configs={key: rule})]})
    altered = AlterConfigPolicy.RequestMetadata(
        ConfigResource(ConfigResourceType.BROKER, "1"), {key: "hunter1"}
    )
    assert messages(rules.violations_of_alteration(altered)) == [
        f"{key} of broker '1' is (hidden): it {says}"
    ]


PROTECTED = topic_rules(
    Rule("pay.", protected=frozenset(ProtectedAction), because="ask finance"),
    Rule("pay.tests.", protected=frozenset()),
)


def test_a_protected_topic_cannot_be_deleted_grown_or_altered() -> None:
    words = "Topic 'pay.t' is protected: "
    assert messages(PROTECTED.violations_of_deletion("pay.t")) == [
        f"{words}it must not be deleted (ask finance)"
    ]
    assert messages(PROTECTED.violations_of_more_partitions("pay.t", 9)) == [
        f"{words}no partitions may be added (ask finance)"
    ]
    assert messages(PROTECTED.violations_of_alteration(altered_topic("pay.t"))) == [
        f"{words}its configs must not be altered (ask finance)"
    ]
    assert PROTECTED.violations_of_creation(new_topic("pay.t")) == []
    for name in ("other", "pay.tests.t"):
        assert (
            PROTECTED.violations_of_deletion(name) == PROTECTED.violations_of_more_partitions(name, 9) == []
        )


def test_added_partitions_are_within_the_limits_of_new_topics() -> None:
    rules = topic_rules(Rule(partitions=Bounds(max=5)))
    assert rules.violations_of_more_partitions("t", 5) == []
    assert messages(rules.violations_of_more_partitions("t", 6)) == [
        "Topic 't' has 6 partitions: it must be at most 5"
    ]


@pytest.mark.parametrize("action", AclAction)
@pytest.mark.parametrize(
    ("name", "pattern_type", "is_protected"),
    [
        ("pay.t", PatternType.LITERAL, True),
        ("*", PatternType.LITERAL, True),
        ("pay.", PatternType.PREFIXED, True),
        ("pay.a", PatternType.PREFIXED, True),
        ("pa", PatternType.PREFIXED, True),
        ("pay.tests.", PatternType.PREFIXED, False),
        ("pay.tests.t", PatternType.LITERAL, False),
        ("pay", PatternType.LITERAL, False),
        ("paz", PatternType.PREFIXED, False),
    ],
)
def test_an_acl_is_protected_by_the_resources_that_it_matches(
    action: AclAction, name: str, pattern_type: PatternType, is_protected: bool
) -> None:
    assert len(PROTECTED.violations_of_acl(action, acl(name, pattern_type))) == is_protected
    assert (
        PROTECTED.violations_of_acl(action, acl(name, pattern_type, resource_type=ResourceType.GROUP)) == []
    )


def test_some_acls_must_not_be_created_but_may_be_deleted() -> None:
    forbidden = {"principal": "User:*", "operation": AclOperation.WRITE}
    rules = Rules({}, [AclRule(forbidden, because="writers have names")])
    bad = acl(principal="User:*", operation=AclOperation.WRITE)
    assert messages(rules.violations_of_acl(AclAction.CREATE, bad)) == [
        "ALLOW WRITE for User:* from * on LITERAL TOPIC 't' is forbidden (writers have names)"
    ]
    assert rules.violations_of_acl(AclAction.DELETE, bad) == []
    assert rules.violations_of_acl(AclAction.CREATE, acl(principal="User:*")) == []


@pytest.mark.parametrize(
    ("forbidden", "permission", "operation", "is_forbidden"),
    [
        (AclOperation.WRITE, AclPermission.ALLOW, AclOperation.ALL, True),
        (AclOperation.WRITE, AclPermission.DENY, AclOperation.ALL, True),
        (AclOperation.DESCRIBE, AclPermission.ALLOW, AclOperation.ALTER, True),
        (AclOperation.DESCRIBE, AclPermission.DENY, AclOperation.ALTER, False),
        (AclOperation.DESCRIBE_CONFIGS, AclPermission.ALLOW, AclOperation.ALTER_CONFIGS, True),
        (AclOperation.DESCRIBE, AclPermission.ALLOW, AclOperation.CREATE, False),
        (AclOperation.READ, AclPermission.ALLOW, AclOperation.DESCRIBE, False),
        (AclOperation.ALL, AclPermission.ALLOW, AclOperation.WRITE, False),
    ],
)
def test_a_forbidden_operation_is_also_forbidden_as_a_part_of_others(
    forbidden: AclOperation, permission: AclPermission, operation: AclOperation, is_forbidden: bool
) -> None:
    rules = Rules({}, [AclRule({"operation": forbidden, "principal": "User:*"})])
    new = acl(principal="User:*", operation=operation)._replace(permission=permission)
    assert bool(rules.violations_of_acl(AclAction.CREATE, new)) is is_forbidden
    assert rules.violations_of_acl(AclAction.CREATE, new._replace(principal="User:a")) == []


def test_a_violation_in_mode_warn_is_not_enforced() -> None:
    rules = topic_rules(Rule(partitions=Bounds(max=1), enforced=False))
    assert [violation.enforced for violation in rules.violations_of_creation(new_topic("t", 2))] == [False]
