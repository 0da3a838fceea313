"""References to secrets are resolved, and the secrets never printed."""

from pathlib import Path

import pytest

from barnabas.declared.secrets import SecretMissing, Secrets, without_secrets
from barnabas.declared.state import SecretRef


def test_a_secret_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("from the file\n")
    secrets = Secrets({"WORD": "from the environment"}, tmp_path)
    assert secrets.value(SecretRef("env", "WORD")) == "from the environment"
    assert secrets.value(SecretRef("file", "word")) == "from the file"
    assert secrets.value(SecretRef("file", str(tmp_path / "word"))) == "from the file"
    assert "environment" not in repr(secrets)


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        (SecretRef("env", "NOPE"), "the environment variable NOPE is empty or does not exist"),
        (SecretRef("file", "nope"), "the file nope cannot be read: No such file"),
        (SecretRef("file", "empty"), "the file empty is empty or does not exist"),
        (SecretRef("file", "bytes"), "the file bytes cannot be read: it must be UTF-8"),
    ],
)
def test_a_missing_secret_is_reported_by_its_reference(tmp_path: Path, secret: SecretRef, says: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(SecretMissing) as error:
        Secrets({}, tmp_path).value(secret)
    assert says in str(error.value)


def test_a_secret_is_printed_as_hidden() -> None:
    assert str(SecretRef("env", "X")) == "(hidden)"


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("Invalid value 'hunter2' for k", ["hunter2"], "Invalid value '(hidden)' for k"),
        (r"Invalid value 'a\\b' for k", ["a\\b"], "Invalid value '(hidden)' for k"),
        ("'hunter2hunter' is none", ["hunter2", "hunter2hunter"], "'(hidden)' is none"),
        ("Invalid value", ["hunter2"], "Invalid value"),
    ],
)
def test_broker_messages_are_printed_without_secrets(text: str, values: list[str], expected: str) -> None:
    assert without_secrets(text, values) == expected


@pytest.mark.parametrize("text", ["no user 'hunter2'", "Invalid value 'module password=\"hun...", "hunt"])
def test_messages_that_contain_a_part_of_a_secret_are_hidden(text: str) -> None:
    expected = without_secrets(text, ['module password="hunter2";'])
    assert expected == "the broker's message contains part of the secret, so it is not shown"
