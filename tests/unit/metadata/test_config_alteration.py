from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.metadata.configs import (
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    AlterationRules,
    ConfigAlteration,
    ConfigAlterationResult,
    _edited_list,
    decide_alter,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import NEVER
from barnabas.metadata.topics import TOPICS
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import cluster, new_topic, replayed, with_elr

SET, DELETE, APPEND, SUBTRACT = OpType
TOPIC = Resource(ResourceKind.TOPIC, "t")
GROUP = Resource(ResourceKind.GROUP, "g")
BROKER = Resource(ResourceKind.BROKER, "1")


def check(resource: Resource, existing: Mapping[str, str], requested: Mapping[str, str]) -> None:
    if "bad" in requested:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"bad for {resource}")


RULES = AlterationRules(lambda resource, key: "delete" if key == "list" else None, check)


def edits(*requested: AlterConfigOp, resource: Resource = TOPIC, replaces: bool = False) -> ConfigAlteration:
    return ConfigAlteration(resource, requested, replaces)


def image_with(**overrides: str) -> MetadataImage:
    return cluster(1, new_topic("t", configs=overrides))


def decided(
    image: MetadataImage, *alterations: ConfigAlteration, validate_only: bool = False
) -> tuple[list[ConfigAlterationResult], MetadataImage]:
    decision = decide_alter(image, alterations, RULES, validate_only=validate_only)
    return decision.response, replayed(image, decision)


def altered(image: MetadataImage, *requested: AlterConfigOp, **fields: Any) -> dict[str, str]:
    """Return the topic's configs after edits, which must be valid."""
    outcomes, after = decided(image, edits(*requested, **fields))
    assert [each.error for each in outcomes] == [None]
    return dict(after.configs(TOPIC))


def code_of(*requested: AlterConfigOp) -> ErrorCode | None:
    [outcome], _ = decided(image_with(), edits(*requested))
    return outcome.error.code if outcome.error else None


def test_single_configs_are_set_and_deleted_and_others_kept() -> None:
    after = altered(
        image_with(a="1", b="2"),
        AlterConfigOp("a", SET, "3"),
        AlterConfigOp("b", DELETE),
        AlterConfigOp("c", SET, "4"),
    )
    assert after == {"a": "3", "c": "4"}


def test_a_replacement_deletes_unnamed_configs() -> None:
    assert altered(image_with(a="1", b="2"), AlterConfigOp("b", SET, "5"), replaces=True) == {"b": "5"}
    assert altered(image_with(a="1"), replaces=True) == {}


def test_a_resource_without_configs_has_no_row() -> None:
    _, after = decided(image_with(a="1"), edits(AlterConfigOp("a", DELETE)))
    assert dict(after.topic_configs) == {}


@pytest.mark.parametrize(
    ("existing", "operation", "value", "left"),
    [
        (None, APPEND, "compact", "delete,compact"),
        (None, SUBTRACT, "delete", ""),
        ("", APPEND, "compact", "compact"),
        ("compact", APPEND, "compact", "compact"),
        ("compact", APPEND, "x,x,y", "compact,x,y"),
        ("compact", APPEND, "", "compact,"),  # as in Kafka, whose validators then reject it
        ("", APPEND, "", ""),
        ("compact", APPEND, "x,", "compact,x"),
        ("compact", APPEND, ",,", "compact"),
        ("compact", APPEND, ",x", "compact,,x"),
        ("a,b,c", SUBTRACT, "b,none", "a,c"),
        ("a, b", SUBTRACT, "b", "a, b"),
    ],
)
def test_list_entries_are_appended_and_subtracted(
    existing: str | None, operation: OpType, value: str, left: str
) -> None:
    image = image_with() if existing is None else image_with(list=existing)
    assert altered(image, AlterConfigOp("list", operation, value)) == {"list": left}


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        ([AlterConfigOp("a", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([AlterConfigOp("a", SET, "1"), AlterConfigOp("a", DELETE)], ErrorCode.INVALID_REQUEST),
        ([AlterConfigOp("a", SET, None)], ErrorCode.INVALID_REQUEST),
        ([AlterConfigOp("list", SUBTRACT, None)], ErrorCode.INVALID_REQUEST),
        ([AlterConfigOp("bad", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([AlterConfigOp("a", DELETE, "whatever")], None),
        ([], None),
    ],
)
def test_invalid_changes_are_rejected(requested: list[AlterConfigOp], code: ErrorCode | None) -> None:
    assert code_of(*requested) is code


def test_one_invalid_resource_does_not_fail_others() -> None:
    group = edits(AlterConfigOp("bad", SET, "1"), resource=GROUP)
    outcomes, after = decided(image_with(), edits(AlterConfigOp("a", SET, "1")), group)
    assert [each.error is None for each in outcomes] == [True, False]
    assert dict(after.configs(TOPIC)) == {"a": "1"}
    assert dict(after.configs(GROUP)) == {}


def test_validate_only_changes_nothing_and_returns_the_same() -> None:
    requested = edits(AlterConfigOp("a", SET, "1"), AlterConfigOp("b", DELETE), replaces=True)
    image = image_with(b="1", c="2")
    [outcome], after = decided(image, requested, validate_only=True)
    assert after is image
    assert outcome.edited == {"a": "1", "b": None}
    assert outcome.removed == {"c"}


def test_unchanged_configs_are_reported_for_brokers_only() -> None:
    same = (AlterConfigOp("a", SET, "1"), AlterConfigOp("b", DELETE))
    [of_topic], _ = decided(image_with(a="1"), edits(*same), validate_only=True)
    assert of_topic.edited == {}
    [of_broker], _ = decided(MetadataImage(), edits(*same, resource=BROKER), validate_only=True)
    assert of_broker.edited == {"a": "1", "b": None}


def test_a_decision_depends_on_the_configs_and_for_a_topic_on_the_topic() -> None:
    image = image_with()
    decision = decide_alter(
        image,
        [edits(AlterConfigOp("a", SET, "1")), edits(AlterConfigOp("a", SET, "1"), resource=GROUP)],
        RULES,
        validate_only=False,
    )
    assert decision.reads == {
        TOPIC_CONFIGS.key("t"): NEVER,
        TOPICS.key("t"): image.topics.revision("t"),
        GROUP_CONFIGS.key("g"): NEVER,
    }


def test_an_unchanged_value_is_not_written() -> None:
    decision = decide_alter(
        image_with(a="1"), [edits(AlterConfigOp("a", SET, "1"))], RULES, validate_only=False
    )
    assert decision.changes == ()


def test_lists_keep_their_order_when_entries_are_appended_and_subtracted() -> None:
    assert _edited_list("b,a", APPEND, "a,c,c,d") == "b,a,c,d"
    assert _edited_list("b,a,b,c", SUBTRACT, "b,x") == "a,c"
    assert _edited_list("", APPEND, "a") == "a"


def test_min_insync_replicas_of_one_broker_is_refused_with_eligible_leader_replicas() -> None:
    set_it = AlterConfigOp("min.insync.replicas", SET, "2")
    for resource, code in [(BROKER, ErrorCode.INVALID_CONFIG), (Resource(ResourceKind.BROKER, ""), None)]:
        [outcome], _ = decided(with_elr(image_with()), edits(set_it, resource=resource))
        assert (outcome.error and outcome.error.code) == code
    [outcome], _ = decided(image_with(), edits(set_it, resource=BROKER))
    assert outcome.error is None
