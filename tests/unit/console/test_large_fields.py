"""Fields that are expensive to parse are limited before."""

import pytest

from barnabas.console.forms import Form
from barnabas.console.pages.group import OFFSETS_CHARACTERS_MAX, offsets_in
from barnabas.console.pages.produce import JSON_CHARACTERS_MAX, field_bytes
from barnabas.console.problems import PageError


def test_json_to_be_produced_is_validated_up_to_a_limit() -> None:
    for text, written in (
        ("[" * JSON_CHARACTERS_MAX, "recursion"),
        ("1" * (JSON_CHARACTERS_MAX + 1), "not validated"),
    ):
        form = Form({"value": [text], "value_form": ["json"]})
        assert field_bytes(form, "value") is None
        assert written in form.errors["value"]
    form = Form({"value": ["1" * (JSON_CHARACTERS_MAX + 1)], "value_form": ["text"]})
    assert field_bytes(form, "value") is not None


@pytest.mark.parametrize("text", ["[" * 200_000, "[" * (OFFSETS_CHARACTERS_MAX + 1), "[[1]]", "{}x"])
def test_offsets_that_were_not_previewed_are_rejected(text: str) -> None:
    with pytest.raises(PageError):
        offsets_in(text)
