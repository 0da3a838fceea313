import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.configs import BROKER_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.image import MetadataImage
from support.images import replayed
from support.loop import on_loop

KEY = "log.retention.ms"
STATIC = BrokerConfig({"node.id": "1", KEY: "1000"})


def image_with(**of_broker: dict[str, str]) -> MetadataImage:
    """Return an image of broker configs; the broker is `b1`, `b2` ..., or `every`."""
    changes = [
        BROKER_CONFIGS.put("" if name == "every" else name[1:], values) for name, values in of_broker.items()
    ]
    return replayed(MetadataImage(), Decision(None, tuple(changes)))


def loaded(image: MetadataImage, static: BrokerConfig = STATIC) -> DynamicConfig:
    config = DynamicConfig(static)
    config.load(image)
    return config


def test_a_brokers_own_value_precedes_the_default_and_that_the_static_value() -> None:
    assert loaded(MetadataImage()).current is STATIC
    assert loaded(image_with(every={KEY: "2"})).current.integer(KEY) == 2
    assert loaded(image_with(every={KEY: "2"}, b1={KEY: "3"})).current.integer(KEY) == 3
    assert loaded(image_with(b2={KEY: "4"})).current.integer(KEY) == 1000


@on_loop
async def test_listeners_are_called_exactly_when_broker_configs_change() -> None:
    config = loaded(MetadataImage())
    calls: list[tuple[int, int]] = []

    async def follow(before: BrokerConfig, after: BrokerConfig) -> None:
        calls.append((before.integer(KEY), after.integer(KEY)))

    config.on_change(follow)
    changed = image_with(b1={KEY: "5"})
    await config.apply(MetadataImage(), changed, ChangedKeys(()))
    await config.apply(changed, changed, ChangedKeys(()))
    assert calls == [(1000, 5)]
    assert config.statistics() == {"of_broker_count": 1, "of_every_broker_count": 0, "changes_count": 1}


@on_loop
async def test_a_listener_that_fails_does_not_prevent_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = loaded(MetadataImage())
    calls: list[int] = []

    async def fail(before: BrokerConfig, after: BrokerConfig) -> None:
        message = "no room"
        raise OSError(message)

    async def follow(before: BrokerConfig, after: BrokerConfig) -> None:
        calls.append(after.integer(KEY))

    config.on_change(fail)
    config.on_change(follow)
    await config.apply(MetadataImage(), image_with(b1={KEY: "5"}), ChangedKeys(()))
    assert calls == [5]
    assert "no room" in capsys.readouterr().err


@on_loop
async def test_a_deleted_value_is_replaced_by_the_next_source() -> None:
    config = loaded(image_with(every={KEY: "2"}, b1={KEY: "3"}))
    after = image_with(every={KEY: "2"})
    await config.apply(MetadataImage(), after, ChangedKeys(()))
    assert (config.current.integer(KEY), config.layers.of_broker) == (2, {})


@pytest.mark.parametrize(
    "values",
    [
        {"log.segment.bytes": "no number", KEY: "7"},
        {"principal.builder.class": "org.example.Own", KEY: "7"},
    ],
)
def test_an_invalid_stored_value_is_ignored_and_others_apply(values: dict[str, str]) -> None:
    config = loaded(image_with(b1=values))
    assert config.current.integer(KEY) == 7
    assert config.current.integer("log.segment.bytes") == 1 << 30
    assert config.layers.of_broker == {KEY: "7"}


def test_inconsistent_stored_values_are_ignored() -> None:
    config = loaded(image_with(b1={"listener.security.protocol.map": "OTHER:PLAINTEXT"}))
    assert config.current.listeners == STATIC.listeners


def test_dynamic_listeners_that_conflict_with_static_ones_do_not_take_other_values_with_them() -> None:
    static = BrokerConfig(
        {
            "listeners": "PLAINTEXT://h:9092,EXT://h:9094",
            "advertised.listeners": "PLAINTEXT://h:9092,EXT://h:9094",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXT:PLAINTEXT",
        }
    )
    config = DynamicConfig(static)
    config.load(image_with(b1={"listeners": "PLAINTEXT://h:9092"}, every={KEY: "7", "max.connections": "8"}))
    assert config.current.listeners == static.listeners
    assert config.current.integer(KEY) == 7
    assert config.current.integer("max.connections") == 8
