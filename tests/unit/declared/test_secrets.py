"""Secrets are found where they are said to be, and shown nowhere."""

from pathlib import Path

import pytest

from barnabas.declared.secrets import SecretMissing, Secrets
from barnabas.declared.state import Secret


def test_a_secret_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("from the file\n")
    secrets = Secrets({"WORD": "from the environment"}, tmp_path)
    assert secrets.value(Secret("env", "WORD")) == "from the environment"
    assert secrets.value(Secret("file", "word")) == "from the file"
    assert secrets.value(Secret("file", str(tmp_path / "word"))) == "from the file"
    assert "environment" not in repr(secrets)


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        (Secret("env", "NOPE"), "the environment variable NOPE holds no secret"),
        (Secret("file", "nope"), "the file nope cannot be read: No such file"),
        (Secret("file", "empty"), "the file empty holds no secret"),
        (Secret("file", "bytes"), "the file bytes cannot be read: it must be UTF-8"),
    ],
)
def test_one_that_is_not_there_is_told_by_its_place(tmp_path: Path, secret: Secret, says: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(SecretMissing) as told:
        Secrets({}, tmp_path).value(secret)
    assert says in str(told.value)


def test_a_secret_is_printed_as_hidden() -> None:
    assert str(Secret("env", "X")) == "(hidden)"
