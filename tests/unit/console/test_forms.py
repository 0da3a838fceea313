"""Parsing of form fields."""

import pytest

from barnabas.console.forms import Form


def form(**values: str) -> Form:
    return Form({name: [value] for name, value in values.items()})


def test_texts_are_stripped_and_line_ends_normalized() -> None:
    sent = form(a="  x ", b=" y\r\nz\r\n")
    assert sent.text("a") == "x"
    assert sent.raw("b") == " y\nz\n"
    assert sent.text("none", "default") == "default"
    assert not sent.errors


@pytest.mark.parametrize("text", ["0", "12", " 7 ", "1 000", "9223372036854775807"])
def test_whole_numbers(text: str) -> None:
    sent = form(n=text)
    assert sent.whole("n") == int(text.replace(" ", ""))
    assert not sent.errors


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "9223372036854775808", "9" * 5_000, "1e3"])
def test_an_invalid_whole_number_is_reported(text: str) -> None:
    sent = form(n=text)
    assert sent.whole("n", default=3) == 3
    assert "is not a whole number from 0" in sent.errors["n"]
    assert len(sent.errors["n"]) < 120


def test_required_fields_choices_and_checkboxes() -> None:
    sent = form(way="b", other="z", box="1")
    assert sent.one_of("way", ("a", "b")) == "b"
    assert sent.one_of("missing", ("a", "b")) == "a"
    assert sent.one_of("other", ("a", "b")) == "a"
    assert sent.flag("box")
    assert not sent.flag("none")
    sent.needed("none")
    assert sent.errors == {"other": "'z' is not one of a, b.", "none": "This field is required."}
    sent.refuse("none", "later words change nothing")
    assert sent.errors["none"] == "This field is required."
