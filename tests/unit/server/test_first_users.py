from pathlib import Path

import pytest

from barnabas.config.definition import ConfigError
from barnabas.server.first_users import VARIABLE, first_users, places


def test_users_come_from_options_and_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("in a file\n")
    options = ["alice=a=b", f"bob=@{tmp_path / 'password'}"]
    assert first_users(options, {VARIABLE: "carol=c alice=weaker"}) == {
        "alice": "a=b",
        "bob": "in a file",
        "carol": "c",
    }
    assert first_users([], {}) == {}


@pytest.mark.parametrize("text", ["alice", "=secret", "alice="])
def test_what_is_no_user_is_told_without_its_password(text: str) -> None:
    with pytest.raises(ConfigError, match="must be NAME=PASSWORD or NAME=@FILE") as refused:
        first_users([text], {})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file"), (b"\n", "empty"), (b"\xff", "not UTF-8")]
)
def test_a_file_without_a_password_is_named(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"{path}.*{why}"):
        first_users([f"alice=@{path}"], {})


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (b"--add-scram\0admin=admin\0", b"--add-scram\0admin=*****\0"),
        (b"--data\0/abc\0--add-scram\0a=abc\0", b"--data\0/abc\0--add-scram\0a=***\0"),
        (b"a=abcdef\0b=abc\0c=abc\0", b"a=******\0b=***\0c=***\0"),
        (b"--set\0key= abc\0", b"--set\0key= ***\0"),
    ],
)
def test_passwords_are_found_among_the_arguments_where_they_stand_as_values(
    arguments: bytes, shown: bytes
) -> None:
    concealed = bytearray(arguments)
    for position, size_bytes in places(arguments, ["admin", "abc", "abcdef", ""]):
        concealed[position : position + size_bytes] = b"*" * size_bytes
    assert concealed == shown
