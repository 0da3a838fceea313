import os
from pathlib import Path

import pytest

from barnabas.security.sasl.users_file import UsersFile


def written(path: Path, text: str, second: int) -> Path:
    """The file with a time of its own, so that no clock's grain hides the change."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (second, second))
    return path


def test_users_are_read_as_properties(tmp_path: Path) -> None:
    users = UsersFile(written(tmp_path / "users", "# people\nalice=secret\njürgen = größe\n", 1))
    assert [users.password_of(user) for user in ("alice", "jürgen", "nobody")] == ["secret", "größe", None]


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    path = written(tmp_path / "users", "alice=secret", 1)
    users = UsersFile(path)
    written(path, "bob=secret", 2)
    assert (users.password_of("alice"), users.password_of("bob")) == (None, "secret")


@pytest.mark.parametrize("damage", ["remove", "malform"])
def test_while_it_cannot_be_read_what_was_read_last_holds(tmp_path: Path, damage: str) -> None:
    path = written(tmp_path / "users", "alice=secret", 1)
    users = UsersFile(path)
    if damage == "remove":
        path.unlink()
    else:
        written(path, "alice=\\u12", 2)
    assert users.password_of("alice") == "secret"


def test_a_file_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        UsersFile(tmp_path / "users")
