"""Which content type a response has."""

import pytest

from barnabas.registry.media_types import accepted_type

V1, ANY_VERSION, JSON = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", V1),
        ("*", V1),
        ("*/*", V1),
        ("application/*", V1),
        ("application/json", JSON),
        ("application/json; q=0.5, application/vnd.schemaregistry+json; q=0.9", ANY_VERSION),
        (f"{V1}, {ANY_VERSION}; q=0.9, {JSON}; q=0.5", V1),
        ("text/html, image/gif, *; q=.2, */*; q=.2", V1),
        ("application/json; q=high", JSON),
        ("text/*", None),
        ("application/vnd.schemaregistry.v2+json", None),
        ("application/json; q=0", None),
    ],
)
def test_the_heaviest_type_is_chosen(accept: str, kind: str | None) -> None:
    assert accepted_type(accept) == kind
