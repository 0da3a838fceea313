from pathlib import Path

import pytest

from barnabas.config.definition import ConfigError
from barnabas.server.bootstrap_users import VARIABLE, bootstrap_users


def test_users_come_from_options_and_the_environment(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("in a file\n")
    options = ["alice=a=b", f"bob=@{tmp_path / 'password'}"]
    assert bootstrap_users(options, {VARIABLE: "carol=c alice=weaker"}) == {
        "alice": "a=b",
        "bob": "in a file",
        "carol": "c",
    }
    assert bootstrap_users([], {}) == {}


@pytest.mark.parametrize("text", ["alice", "=secret", "alice="])
def test_an_invalid_user_is_reported_without_its_password(text: str) -> None:
    with pytest.raises(ConfigError, match="must be NAME=PASSWORD or NAME=@FILE") as refused:
        bootstrap_users([text], {})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file"), (b"\n", "empty"), (b"\xff", "not UTF-8")]
)
def test_a_file_without_a_password_is_reported(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"{path}.*{why}"):
        bootstrap_users([f"alice=@{path}"], {})
