import pytest

from barnabas.config.definition import ConfigError
from barnabas.config.listeners import (
    Listener,
    ListenerAddress,
    SecurityProtocol,
    advertise,
    check_ports,
    parse_endpoints,
    parse_protocol_map,
)

PLAIN = SecurityProtocol.PLAINTEXT
PROTOCOLS = {"PLAINTEXT": PLAIN, "TLS": SecurityProtocol.SSL}


def endpoints(*entries: str) -> list[Listener]:
    return parse_endpoints("listeners", entries, PROTOCOLS)


@pytest.mark.parametrize(
    ("entry", "listener"),
    [
        ("PLAINTEXT://:9092", Listener("PLAINTEXT", "", 9092, PLAIN)),
        ("plaintext://localhost:0", Listener("PLAINTEXT", "localhost", 0, PLAIN)),
        ("TLS://[::1]:65535", Listener("TLS", "::1", 65535, SecurityProtocol.SSL)),
        ("TLS://host-1.example_a:1", Listener("TLS", "host-1.example_a", 1, SecurityProtocol.SSL)),
    ],
)
def test_an_endpoint_has_name_host_port_and_protocol(entry: str, listener: Listener) -> None:
    assert endpoints(entry) == [listener]


@pytest.mark.parametrize(
    "entry",
    [
        "PLAINTEXT",
        "PLAINTEXT://",
        "PLAINTEXT://h",
        "PLAINTEXT://h:x",
        "PLAINTEXT://a b:1",
        "PLAINTEXT://h:65536",
    ],
)
def test_a_malformed_endpoint_is_rejected(entry: str) -> None:
    with pytest.raises(ConfigError, match="must be NAME://host:port") as caught:
        endpoints(entry)
    assert caught.value.value == entry


def test_an_endpoint_without_security_protocol_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"OTHER has no entry in listener\.security\.protocol\.map"):
        endpoints("OTHER://h:1")


def test_two_endpoints_with_one_name_are_rejected() -> None:
    with pytest.raises(ConfigError, match="must have its own name"):
        endpoints("TLS://h:1", "tls://h:2")


def test_a_protocol_map_assigns_each_name_its_protocol() -> None:
    assert parse_protocol_map("m", " a:SASL_SSL , B:plaintext,") == {
        "A": SecurityProtocol.SASL_SSL,
        "B": SecurityProtocol.PLAINTEXT,
    }


@pytest.mark.parametrize("text", ["A", "A:TLS", "A:"])
def test_a_protocol_map_with_an_unknown_protocol_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match="one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        parse_protocol_map("listener.security.protocol.map", text)


@pytest.mark.parametrize(
    ("first", "second"),
    [("127.0.0.1:1", "127.0.0.1:2"), ("127.0.0.1:0", "127.0.0.1:0"), ("127.0.0.1:1", "[::1]:1")],
)
def test_ports_may_differ_be_ephemeral_or_be_shared_by_ipv4_and_ipv6(first: str, second: str) -> None:
    entries = (f"PLAINTEXT://{first}", f"TLS://{second}")
    check_ports(entries, endpoints(*entries))


@pytest.mark.parametrize("second", ["127.0.0.2:1", "localhost:1", ":1"])
def test_a_port_shared_by_two_listeners_is_rejected(second: str) -> None:
    entries = ("PLAINTEXT://127.0.0.1:1", f"TLS://{second}")
    with pytest.raises(ConfigError, match="port 1 is used twice"):
        check_ports(entries, endpoints(*entries))


def test_listeners_advertise_their_own_address_by_default() -> None:
    assert advertise(endpoints("TLS://h:1"), None)[0].advertised == ListenerAddress("h", 1)
    assert advertise(endpoints("TLS://0.0.0.0:1"), endpoints("TLS://h:2"))[0].advertised == ListenerAddress(
        "h", 2
    )


def test_a_listener_that_is_not_advertised_has_no_address() -> None:
    listeners = advertise(endpoints("TLS://h:1", "PLAINTEXT://h:2"), endpoints("TLS://h:3"))
    assert [listener.advertised for listener in listeners] == [ListenerAddress("h", 3), None]


def test_the_wildcard_address_cannot_be_advertised() -> None:
    with pytest.raises(ConfigError, match=r"TLS://0\.0\.0\.0:1.*advertised\.listeners=TLS://HOST:1"):
        advertise(endpoints("TLS://0.0.0.0:1"), None)


def test_an_advertised_name_needs_a_listener() -> None:
    with pytest.raises(ConfigError, match="must be among the listeners: PLAINTEXT"):
        advertise(endpoints("PLAINTEXT://h:1"), endpoints("TLS://h:1"))
