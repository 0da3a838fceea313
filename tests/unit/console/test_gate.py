"""Which hosts and origins are let through."""

import pytest
from starlette.datastructures import Headers

from barnabas.console.gate import is_own_host, is_same_origin

OWN = {"localhost", "kafka.example"}


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:9680", "127.0.0.1:1", "10.1.2.3", "[::1]:80", "kafka.example", "a.localhost"],
)
def test_addresses_and_own_names_are_answered_to(host: str) -> None:
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
def test_other_names_are_not(host: str) -> None:
    assert not is_own_host(host, OWN)


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"origin": "http://localhost:1"}, True),
        ({"origin": "https://localhost:1"}, True),
        ({"origin": "http://localhost:2"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": ""}, False),
        ({"origin": "http://[::1"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
    ],
)
def test_forms_come_from_the_same_origin(headers: dict[str, str], passes: bool) -> None:
    assert is_same_origin(Headers({"host": "localhost:1", **headers})) is passes
