import pytest

from barnabas.config.keys.broker import BROKER_KEYS, broker_synonyms, listener_base


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.tls.ssl.key.password", "ssl.key.password"),
        ("listener.name.tls.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.tls.scram-sha-512.connections.max.reauth.ms", "connections.max.reauth.ms"),
        ("listener.name.tls", None),
        ("listener.name.tls.", None),
        ("ssl.key.password", None),
    ],
)
def test_a_prefixed_name_overrides_the_key_after_the_prefix(name: str, base: str | None) -> None:
    assert listener_base(name) == base


def test_times_have_synonyms_in_other_units_the_finest_first() -> None:
    retention = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    assert all(broker_synonyms(name, with_listeners=True) == retention for name in retention)
    assert broker_synonyms("log.roll.hours", with_listeners=False) == ("log.roll.ms", "log.roll.hours")


def test_the_flush_interval_falls_back_to_the_scheduler_but_not_the_reverse() -> None:
    scheduler = "log.flush.scheduler.interval.ms"
    assert broker_synonyms("log.flush.interval.ms", with_listeners=True)[1:] == (scheduler,)
    assert broker_synonyms(scheduler, with_listeners=True) == (scheduler,)


def test_a_prefixed_name_can_fall_back_to_its_base() -> None:
    name = "listener.name.tls.ssl.protocol"
    assert broker_synonyms(name, with_listeners=True) == (name, "ssl.protocol")
    assert broker_synonyms(name, with_listeners=False) == (name,)


def test_defaults_are_within_the_bounds_of_their_keys() -> None:
    for key in BROKER_KEYS.values():
        unset = key.default is None
        if key.validator is not None and not unset:
            key.validator.check(key.name, key.default)
