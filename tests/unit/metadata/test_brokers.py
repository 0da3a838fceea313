from dataclasses import replace

from barnabas.metadata.brokers import BROKERS, BrokerRegistration, Endpoint, decide_register
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import NEVER
from support.images import broker, cluster, replayed


def test_a_new_broker_is_registered() -> None:
    joining = broker(4, rack="r1", log_dirs=(bytes(16),))
    decision = decide_register(MetadataImage().brokers, joining)
    assert decision.reads == {"brokers/4": NEVER}
    image = replayed(MetadataImage(), decision)
    assert dict(image.brokers) == {"4": joining}


def test_an_unchanged_registration_writes_nothing() -> None:
    image = cluster(2)
    assert decide_register(image.brokers, broker(2)).changes == ()


def test_a_changed_registration_replaces_the_previous_one() -> None:
    image = cluster(2)
    moved = replace(broker(2), endpoints=(Endpoint("PLAINTEXT", "new", 1),))
    decision = decide_register(image.brokers, moved)
    assert decision.reads == {"brokers/2": image.brokers.revision("2")}
    after = replayed(image, decision)
    assert after.brokers["2"] == moved
    assert after.brokers["1"] == image.brokers["1"]


def test_an_endpoint_is_found_by_its_listener() -> None:
    two = BrokerRegistration(1, (Endpoint("A", "a", 1), Endpoint("B", "b", 2)))
    assert two.endpoint("B") == Endpoint("B", "b", 2)
    assert two.endpoint("C") is None


def test_a_broker_round_trips_through_the_store() -> None:
    whole = BrokerRegistration(
        7,
        (Endpoint("A", "::1", 1), Endpoint("B", "b", 2)),
        "rack",
        (b"\xff" * 16, bytes(16)),
        True,
        True,
        9,
        7,
    )
    for each in (whole, BrokerRegistration(0, ())):
        value = BROKERS.put("k", each).value
        assert value is not None
        assert BROKERS.decode(value) == each


def test_a_broker_stored_before_cordoned_directories_has_none() -> None:
    value = BROKERS.put("k", BrokerRegistration(0, ())).value
    assert value is not None
    assert not BROKERS.decode(value.replace(b'"cordoned"', b'"other"')).cordoned
