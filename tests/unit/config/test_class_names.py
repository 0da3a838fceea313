import pytest

from barnabas.config.class_names import CLASS_KEYS, resolve_class
from barnabas.config.definition import ConfigError
from barnabas.config.keys.broker import BROKER_KEYS


def test_kafkas_class_names_mean_built_in_parts() -> None:
    assigned = resolve_class(
        "group.consumer.assignors", "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    )
    assert assigned == "range"
    assert resolve_class(
        "replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    ) == ("rack-aware")


def test_a_python_class_is_kept() -> None:
    assert resolve_class("create.topic.policy.class.name", "acme.rules:Naming") == "acme.rules:Naming"
    assert resolve_class("alter.config.policy.class.name", "rules:Outer.Inner") == "rules:Outer.Inner"


@pytest.mark.parametrize(
    "name", ["com.acme.Policy", "acme:", ":Policy", "acme.1:Policy", "a b:Policy", "a:b:c"]
)
def test_an_invalid_python_class_is_rejected(name: str) -> None:
    with pytest.raises(ConfigError, match=r"a Python class as package\.module:Class") as caught:
        resolve_class("create.topic.policy.class.name", name)
    assert caught.value.value == name


def test_a_key_without_python_classes_accepts_its_built_in_parts() -> None:
    with pytest.raises(ConfigError, match=r"LeaderSelector or org\.apache\.kafka.*RackAwareReplicaSelector"):
        resolve_class("replica.selector.class", "acme:Selector")


def test_keys_without_effect_accept_any_class() -> None:
    assert resolve_class("ssl.engine.factory.class", "com.acme.Engine") == "com.acme.Engine"


def test_the_classes_belong_to_keys_that_exist() -> None:
    assert set(CLASS_KEYS) <= set(BROKER_KEYS)
