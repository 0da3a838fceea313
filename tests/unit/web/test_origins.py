"""Accepted origins of requests."""

import pytest
from starlette.datastructures import Headers

from barnabas.web.origins import is_same_origin


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
def test_forms_must_come_from_the_same_origin(headers: dict[str, str], passes: bool) -> None:
    assert is_same_origin(Headers({"host": "localhost:1", **headers})) is passes
