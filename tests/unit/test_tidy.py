"""The project's style as a test: what a reader may count on everywhere. No exceptions are kept."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from barnabas.cli.main import COMMANDS, app
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.telemetry.names import METRICS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 500

#: Written by tools/generate_messages.py, and loaded by the name of their API.
GENERATED = SOURCE / "barnabas" / "wire" / "messages"

#: Where the standard library's clocks may be read, or counted with.
CLOCK = SOURCE / "barnabas" / "base" / "clock.py"

FOLDERS = ("src", "tools", "bench", "interop", "tests", "examples")
CODE = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if GENERATED not in path.parents and "node_modules" not in path.parts
)
MODULES = sorted(path for path in (SOURCE / "barnabas").rglob("*.py") if GENERATED not in path.parents)


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return name.removesuffix(".__init__")


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module, or name in a module, that a file imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{short(path)}: {function.name} has {lines_count} lines"
        for path in CODE
        for function in functions_of(path)
        if (lines_count := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_no_file_is_longer_than_can_be_held_in_mind() -> None:
    long = [
        f"{short(path)} has {lines_count} lines"
        for path in CODE
        if (lines_count := path.read_text(encoding="utf-8").count("\n")) > FILE_LINES_MAX
    ]
    assert long == []


def test_nothing_is_left_to_be_done_later() -> None:
    words = re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X|H[A]CK)\b")  # written so as not to find itself
    texts = [*CODE, *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "Makefile"]
    left = [
        f"{short(path)}:{number}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if words.search(line)
    ]
    assert left == []


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    marks = {"skip", "skipif", "xfail", "importorskip"}
    found = [
        f"{short(path)}:{node.lineno}: {node.attr}"
        for folder in ("unit", "node", "spark")
        for path in (ROOT / "tests" / folder).rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in marks
    ]
    assert found == []


# Modules


def is_entry_point(path: Path) -> bool:
    """Whether a module is found by its name in pyproject.toml, in the table of commands, or among the APIs."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    named = [*project["scripts"].values(), *project["entry-points"]["pytest11"].values()]
    named += [f"barnabas.cli.{row.target}" for row in COMMANDS]
    if module_name(path) in {each.partition(":")[0] for each in named}:
        return True
    handlers = [function for function in functions_of(path) if function.name == "handle"]
    return "api" in path.parts and any(handler.decorator_list for handler in handlers)


def test_every_module_is_imported_by_somebody() -> None:
    importers = [*SOURCE.rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    imported = frozenset().union(*(imports_of(path) for path in importers))
    dead = [
        short(path)
        for path in MODULES
        if path.name != "__init__.py" and module_name(path) not in imported and not is_entry_point(path)
    ]
    assert dead == []


def layers() -> list[set[str]]:
    """The rooms as pyproject.toml lays them out, the highest first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    [contract] = [each for each in contracts if each["type"] == "layers"]
    return [{room.strip(" ()") for room in layer.split("|")} for layer in contract["layers"]]


def test_what_is_installed_for_the_tests_is_all_that_they_and_the_code_import() -> None:
    """Packages that come along with others today may be gone tomorrow."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, build = settings["project"], settings["build-system"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *extras["test"],
        *extras["spark"],
        *extras["tracing"],
        *build["requires"],
        "pip",
    ]
    declared = {re.split(r"[<>=~! ;\[]", each)[0].lower().replace("_", "-") for each in wanted}
    own = {
        "barnabas",
        "pyspark_barnabas",
        "pyspark_barnabas_batches",
        "bench",
        "differential",
        "examples",
        "interop",
        "node",
        "support",
        "tools",
        "unit",
    }
    owners = packages_distributions()
    folders = ("src", "tests/unit", "tests/node", "tests/support")
    paths = [path for path in CODE if short(path).startswith(folders)]
    roots = {name.partition(".")[0] for path in paths for name in imports_of(path)}
    there = {root for root in roots - own - sys.stdlib_module_names if find_spec(root) is not None}
    foreign = sorted(there)  # what is not there has come along with nobody
    assert [
        root
        for root in foreign
        if not declared & {each.lower().replace("_", "-") for each in owners.get(root, ())}
    ] == []


def test_every_room_has_its_layer() -> None:
    rooms = {path.parent.name for path in (SOURCE / "barnabas").glob("*/__init__.py")}
    assert rooms <= set().union(*layers())


def test_imports_go_down_only() -> None:
    depth = {room: level for level, rooms in enumerate(layers()) for room in rooms}
    upwards = []
    for path in MODULES:
        parts = module_name(path).split(".")
        for imported in imports_of(path):
            target = imported.split(".")
            if len(parts) < 2 or len(target) < 2 or target[0] != "barnabas" or target[1] == parts[1]:
                continue
            if target[1] in depth and depth[target[1]] <= depth[parts[1]]:
                upwards.append(f"{module_name(path)} imports {imported}")
    assert upwards == []


CLOCKS = re.compile(
    r"\btime\.(?:time|monotonic|perf_counter|localtime|gmtime)(?:_ns)?\(|\bdatetime\.(?:now|utcnow|today)\("
)


def test_time_is_read_in_one_place() -> None:
    readers = [
        f"{short(path)}:{number}"
        for path in MODULES
        if path != CLOCK
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if CLOCKS.search(line)
    ]
    assert readers == []


def test_chance_comes_in_by_the_door() -> None:
    """A `Random` is handed in; the module's own functions, which nobody can seed apart, are not used."""
    callers = [
        f"{short(path)}:{node.lineno}"
        for path in MODULES
        if "\nimport random\n" in path.read_text(encoding="utf-8")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "random"
        and node.attr[0].islower()
    ]
    assert callers == []


# Documents


def documented(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_key_is_documented() -> None:
    text = documented("configs.md")
    assert [name for name in (*BROKER_KEYS, *TOPIC_KEYS) if f"`{name}`" not in text] == []


def test_every_metric_is_documented() -> None:
    text = documented("metrics.md")
    assert [metric.name for metric in METRICS if f"`{metric.name}`" not in text] == []


def commands() -> dict[str, Any]:
    """Every command, by the name that a person types."""
    root: Any = get_command(app)
    return dict(root.every_command())


@pytest.mark.parametrize("name", [row.name for row in COMMANDS])
def test_every_command_and_group_has_a_summary(name: str) -> None:
    root: Any = get_command(app)
    assert root.commands[name].load().help


def test_every_command_explains_itself() -> None:
    assert [name for name, command in commands().items() if not command.help] == []


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_explains_itself(name: str) -> None:
    params = commands()[name].params
    assert [param.name for param in params if not getattr(param, "help", None)] == []


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_is_documented(name: str) -> None:
    assert f"`{name}`" in documented("cli.md"), "run tools/generate_cli_docs.py"


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: short(path))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []
