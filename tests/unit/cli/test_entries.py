"""Every command has a valid example, and its document is up to date."""

import ast
import importlib.util
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from rich.text import Text
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.cli.support.commands import entry_of
from barnabas.config.load import NOT_KEYS

ROOT = Path(__file__).resolve().parents[3]
#: Commands that print nothing, or a script.
WITHOUT_JSON = {"serve", "console", "registry", "tables run", "spark-submit", "spark-pipelines", "completion"}


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("cli_docs", ROOT / "tools" / "generate_cli_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMANDS = generator().commands()
ENTRIES = generator().entries()


def test_the_document_is_as_generated() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == generator().render(), "run tools/generate_cli_docs.py"


def declared() -> set[tuple[str, str]]:
    """(module, name) of each function with the decorator `command`."""
    source = ROOT / "src"
    return {
        (".".join(path.relative_to(source).with_suffix("").parts), function.name)
        for path in (source / "barnabas" / "cli").rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "command"
    }


def test_every_declared_command_can_be_called() -> None:
    callbacks = [command.callback for command in COMMANDS.values()]
    assert declared() == {(callback.__module__, callback.__name__) for callback in callbacks}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_commands_have_json_output(name: str) -> None:
    has_json = any(param.name == "as_json" for param in COMMANDS[name].params)
    assert has_json == (name not in WITHOUT_JSON)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_broker_does_not_take_the_variables_of_options_for_settings(name: str) -> None:
    assert {param.envvar for param in COMMANDS[name].params if param.envvar} <= {*NOT_KEYS}


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_example_is_valid(name: str) -> None:
    words = shlex.split(ENTRIES[name].example)
    assert words[: len(name.split())] == name.split()
    root: Any = typer.main.get_command(app)
    context = root.make_context("barnabas", list(words), resilient_parsing=False)
    while context.command.__class__.__name__ != "TyperCommand":
        inner, command, rest = context.command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(inner, rest, parent=context)
    assert context.command.callback is not None


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_help_shows_the_example_and_the_permissions(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"}).output
    entry = ENTRIES[name]
    assert f"Example: barnabas {entry.example}" in shown
    for need in entry.needs:
        assert need.replace(" ", " on the ") in shown


#: Their options are Spark's.
OF_SPARK = {"spark-submit", "spark-pipelines"}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - OF_SPARK))
def test_unknown_commands_and_options_are_usage_errors(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), "--no-such-option"], env={"COLUMNS": "200"})
    assert result.exit_code == 2


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_an_entry_has_the_name_of_its_command(name: str) -> None:
    assert entry_of(COMMANDS[name].callback).name == name.split()[-1]


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout.split()[0]) == (0, "barnabas")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_keeps_brackets(name: str) -> None:
    """Rich would interpret `[spark]` as markup: it must be escaped with a backslash."""
    command = COMMANDS[name]
    texts = [command.help, command.epilog, *(getattr(each, "help", "") for each in command.params)]
    for text in filter(None, texts):
        assert Text.from_markup(text).plain == text.replace("\\[", "["), text
