"""Users of the registry and their passwords."""

import base64
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.registry import basic_auth
from barnabas.registry.basic_auth import BasicAuth


def header(name: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def users(tmp_path: Path, text: str, clock: ManualClock | None = None) -> BasicAuth:
    (tmp_path / "users").write_text(text)
    return BasicAuth(str(tmp_path / "users"), clock)


def test_only_known_users_with_their_passwords_are_admitted(tmp_path: Path) -> None:
    auth = users(tmp_path, "# users\nalice=se=cret\n")
    assert auth.admits(header("alice", "se=cret"), "")
    refused = (
        header("alice", ""),
        header("alice", "\0"),
        header("bob", ""),
        header("bob", "\0"),
        "",
        "Basic ?",
    )
    assert not any(auth.admits(each, "") for each in refused)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("alice=a\nbob=\n", "line 2: bob has an empty password; must be NAME=PASSWORD"),
        ("bob\n", "line 1: must be NAME=PASSWORD"),
    ],
)
def test_a_user_without_a_password_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        users(tmp_path, text)


def test_failed_logins_are_logged_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, object]] = []
    monkeypatch.setattr(basic_auth._log, "info", lambda event, **fields: lines.append(fields))
    clock = ManualClock()
    auth = users(tmp_path, "alice=secret\n", clock)
    auth.admits("", "10.0.0.7")
    auth.admits(header("alice", "secret"), "10.0.0.7")
    assert lines == []
    for _ in range(3):
        auth.admits(header("alice", "wrong"), "10.0.0.7")
    clock.advance(1_000)
    auth.admits(header("bob", "x"), "10.0.0.8")
    assert lines == [
        {"user": "alice", "address": "10.0.0.7"},
        {"user": "bob", "address": "10.0.0.8", "failed_before": 2},
    ]
