"""`barnabas console` and `barnabas serve` where the packages of the console are missing."""

import sys

import pytest
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.cli.support.extras import is_console_installed


def test_without_its_packages_the_console_prints_an_installation_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    ended = CliRunner().invoke(app, ["console"])
    assert ended.exit_code == 1
    assert "The console is not installed: starlette cannot be imported" in ended.output
    assert "pip install '.[console]'" in ended.output


def test_a_broker_finds_out_whether_it_can_serve_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_console_installed()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert not is_console_installed()
