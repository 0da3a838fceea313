import pytest

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.groups import effective_group_values, validate_group_overrides
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.wire.errors import ErrorCode, KafkaError

BROKER = BrokerConfig({"group.consumer.session.timeout.ms": "50000"})


def test_a_group_inherits_the_brokers_values() -> None:
    values = effective_group_values(BROKER, {"consumer.heartbeat.interval.ms": "7000"})
    assert set(values) == set(GROUP_KEYS)
    assert values["consumer.session.timeout.ms"] == 50_000
    assert values["consumer.heartbeat.interval.ms"] == 7000
    assert values["share.auto.offset.reset"] == "latest"


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"consumer.session.timeout.ms": "46000", "consumer.heartbeat.interval.ms": "15000"},
        {"share.auto.offset.reset": "by_duration:PT1H", "share.isolation.level": "read_committed"},
        {"streams.num.standby.replicas": "2", "streams.initial.rebalance.delay.ms": "70000"},
    ],
)
def test_values_within_the_brokers_bounds_pass(overrides: dict[str, str]) -> None:
    validate_group_overrides(BROKER, overrides)


@pytest.mark.parametrize(
    ("key", "text", "part"),
    [
        ("no.such.key", "1", "no.such.key"),
        ("consumer.session.timeout.ms", "soon", "'soon'"),
        ("consumer.session.timeout.ms", "44999", "at least 45000"),
        ("consumer.session.timeout.ms", "60001", "at most 60000"),
        ("consumer.heartbeat.interval.ms", "4999", "group.consumer.min.heartbeat.interval.ms"),
        ("consumer.assignment.interval.ms", "15001", "at most 15000"),
        ("share.delivery.count.limit", "11", "at most 10"),
        ("share.partition.max.record.locks", "4001", "at most 4000"),
        ("share.record.lock.duration.ms", "60001", "at most 60000"),
        ("share.auto.offset.reset", "by_duration:later", "by_duration"),
        ("streams.num.standby.replicas", "3", "group.streams.max.standby.replicas"),
    ],
)
def test_values_outside_are_rejected_with_the_bound(key: str, text: str, part: str) -> None:
    with pytest.raises(KafkaError, match=part) as caught:
        validate_group_overrides(BROKER, {key: text})
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_session_timeout_must_exceed_the_heartbeat_interval() -> None:
    broker = BrokerConfig(
        {"group.share.min.session.timeout.ms": "5000", "group.share.min.heartbeat.interval.ms": "1000"}
    )
    overrides = {"share.session.timeout.ms": "6000", "share.heartbeat.interval.ms": "6000"}
    with pytest.raises(KafkaError, match="more than share"):
        validate_group_overrides(broker, overrides)
