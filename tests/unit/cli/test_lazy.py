"""A command imports its own module, and neither those of other commands nor what it does not need."""

import os
import subprocess
import sys
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from barnabas.cli.main import COMMANDS, app
from barnabas.cli.support.failures import INTERRUPTED
from unit.client.fake_broker import FakeBroker

#: Runs the command line, then prints to stderr the modules that are imported.
PROGRAM = """
import sys
from barnabas.cli.main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
COMMAND_MODULES = {row.target.partition(":")[0].partition(".")[0] for row in COMMANDS}


def imported(*arguments: str, **environment: str) -> set[str]:
    """The modules that a process has imported when the command ends."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    result = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split())


def command_modules(modules: set[str]) -> set[str]:
    """Return the commands whose modules are among these."""
    return {module for module in COMMAND_MODULES if f"barnabas.cli.{module}" in modules}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_program_itself_imports_no_command(argument: str) -> None:
    modules = imported(argument)
    assert command_modules(modules) == set()
    assert {"asyncio", "barnabas.client", "barnabas.wire"} & modules == set()


@pytest.mark.parametrize(
    "arguments", [["topics", "list"], ["topics", "list", "--help"], ["topics", "--help"]]
)
def test_a_command_imports_only_its_module(broker: FakeBroker, arguments: list[str]) -> None:
    assert command_modules(imported(*arguments, BARNABAS_BOOTSTRAP=broker.bootstrap)) == {"topics"}


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["serve", "--help"], "barnabas.server.main"),
        (["console", "--help"], "barnabas.console"),
        (["policy", "test", "--help"], "barnabas.server.main"),
        (["jobs", "scrub", "--help"], "pyspark"),
        (["pipeline", "run", "--help"], "pyspark"),
        (["spark-submit", "--help"], "pyspark"),
        (["spark-pipelines", "--help"], "pyspark"),
    ],
)
def test_help_does_not_import_what_is_heavy(arguments: list[str], heavy: str) -> None:
    assert heavy not in imported(*arguments)


@pytest.mark.parametrize(("line", "expected"), [("barnabas top", set()), ("barnabas topics l", {"topics"})])
def test_a_completion_imports_only_the_module_of_the_line(line: str, expected: set[str]) -> None:
    program = f"import os\nos._exit = lambda code: sys.exit(code)\n{PROGRAM}"
    shell = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
        "_BARNABAS_COMPLETE": "complete_bash",
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | shell, capture_output=True, text=True, check=False
    )
    assert command_modules(set(result.stderr.split())) == expected
    assert result.stdout.split() == [{"top": "topics", "l": "list"}[line.split()[-1]]]


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_what_is_loaded_has_the_name_the_panel_and_the_summary_of_the_table(row: Any) -> None:
    root: Any = typer.main.get_command(app)
    stand_in = root.commands[row.name]
    loaded = stand_in.load()
    assert (loaded.name, loaded.rich_help_panel) == (row.name, row.panel)
    assert loaded.help.split("\n\n")[0] == stand_in.help == row.summary


def test_the_commands_of_a_panel_stand_together() -> None:
    panels = [row.panel for row in COMMANDS]
    assert panels == sorted(panels, key=panels.index)


def test_a_mistyped_command_is_answered_with_the_similar_one() -> None:
    result = CliRunner().invoke(app, ["topcis"])
    assert result.exit_code == 2
    assert "Did you mean 'topics'?" in result.output


def test_ctrl_c_during_the_import_of_a_command_exits_as_during_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("barnabas.cli.support.lazy.import_module", interrupt)
    result = CliRunner().invoke(app, ["topics", "list"])
    assert (result.exit_code, result.output) == (INTERRUPTED, "")
