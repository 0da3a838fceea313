"""Usage errors have the format of all errors."""

import json

import pytest

from unit.cli.conftest import Run

WRONG = [
    (("topics", "create"), "Missing argument 'TOPIC...'", "barnabas topics create --help"),
    (("nosuch",), "No such command 'nosuch'", "barnabas --help"),
    (("topics", "list", "--nope"), "No such option: --nope", "barnabas topics list --help"),
    (
        ("groups", "reset-offsets", "g", "--to-offset", "x"),
        "Invalid value for '--to-offset': 'x' must be a whole number",
        "barnabas groups reset-offsets --help",
    ),
    (
        ("groups", "reset-offsets", "g", "--to-offset", "-1"),
        "Invalid value for '--to-offset': '-1' must be at least 0",
        "barnabas groups reset-offsets --help",
    ),
    (
        ("produce", "t", "--acks", "7"),
        "Invalid value for '--acks': '7' is not one of 'all', '1', '0'",
        "barnabas produce --help",
    ),
]


@pytest.mark.parametrize(("arguments", "message", "hint"), WRONG)
def test_an_error_has_a_hint(run: Run, arguments: tuple[str, ...], message: str, hint: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [f"error: {message}", f"  try: {hint}"]


@pytest.mark.parametrize(("arguments", "message", "hint"), WRONG)
def test_errors_as_json(run: Run, arguments: tuple[str, ...], message: str, hint: str) -> None:
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert json.loads(result.stderr) == {"error": "WRONG_USE", "message": message, "hint": hint}


def test_after_two_dashes_json_is_not_an_option(run: Run) -> None:
    assert run("nosuch", "--", "--json").stderr.startswith("error: ")


def test_a_group_of_commands_without_arguments_shows_its_help(run: Run) -> None:
    result = run("topics")
    assert (result.exit_code, "Usage: barnabas topics" in result.output) == (2, True)
