"""Host names and addresses of this machine."""

import pytest

from barnabas.base.hosts import is_network, is_own_host, own_names

OWN = {"localhost", "kafka.example"}


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:9680", "127.0.0.1:1", "10.1.2.3", "[::1]:80", "kafka.example", "a.localhost"],
)
def test_addresses_and_own_names_are_accepted(host: str) -> None:
    assert is_own_host(host, OWN)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "kafka.example@evil",
        "[::1",
        "a b",
    ],
)
def test_other_names_are_rejected(host: str) -> None:
    assert not is_own_host(host, OWN)


def test_own_names_are_the_machines_and_the_configured_ones_in_lower_case() -> None:
    assert {"localhost", "kafka.example"} <= own_names(["Kafka.Example", ""])
    assert "" not in own_names([""])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.1.2.3", True),
        ("10.0.0.0/8", True),
        ("fd00::/8", True),
        ("proxy", False),
        ("*", False),
        ("", False),
    ],
)
def test_proxies_are_addresses_or_networks(text: str, expected: bool) -> None:
    assert is_network(text) is expected
