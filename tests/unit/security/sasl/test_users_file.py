import os
from pathlib import Path

import pytest

from barnabas.security.sasl.users_file import UsersFile


def written(path: Path, text: str, second: int) -> Path:
    """Write the file with its own timestamp, so that the clock's resolution does not hide the change."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (second, second))
    return path


def test_users_are_read_as_properties(tmp_path: Path) -> None:
    users = UsersFile(written(tmp_path / "users", "# people\nalice=secret\njürgen = größe\n", 1))
    assert [users.password_of(user) for user in ("alice", "jürgen", "nobody")] == ["secret", "größe", None]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "users", "alice=secret", 1)
    users = UsersFile(path)
    written(path, "bob=secret", 2)
    assert (users.password_of("alice"), users.password_of("bob")) == (None, "secret")


@pytest.mark.parametrize("damage", ["remove", "malform"])
def test_while_it_cannot_be_read_the_last_users_apply(
    tmp_path: Path, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "users", "alice=secret", 1)
    users = UsersFile(path)
    if damage == "remove":
        path.unlink()
    else:
        written(path, "alice=\\u12", 2)
    assert [users.password_of("alice") for _ in range(3)] == ["secret"] * 3
    assert capfd.readouterr().err.count("the users file cannot be read") == 1, "clients log in often"
    written(path, "alice=\\u1", 3)
    assert users.password_of("alice") == "secret"
    assert capfd.readouterr().err.count("the users file cannot be read") == 1


def test_a_missing_file_is_reported_immediately(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        UsersFile(tmp_path / "users")
