"""Identifiers have the words of docs/glossary.md, and a class name belongs to one package."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = sorted(
    path
    for package in ("barnabas", "pyspark_barnabas", "pyspark_barnabas_batches", "pyspark_barnabas_delta")
    for path in (ROOT / "src" / package).rglob("*.py")
)
BESIDE_CODE = sorted(
    path
    for folder in ("tests", "bench", "interop", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if ".cache" not in path.parts
)

#: A test's name is a sentence, in which these are ordinary words.
ORDINARY_IN_SENTENCES = frozenset({"place", "whose", "thing", "things"})

#: Packages of messages, whose names are those of Kafka's schemas.
NAMED_BY_KAFKA = frozenset({"messages", "consumer_protocol", "coordinator_records"})


@cache
def words_of(name: str) -> set[str]:
    """Split a name in any case into its words."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the names that a module gives to something, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias):
            yield node.lineno, node.asname or node.name.rpartition(".")[2]


def refused_words() -> set[str]:
    """Return the words in the table of refused identifiers in docs/glossary.md."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    table = text.partition("## Identifiers that are refused")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return {word.strip() for cell in cells[1:] for word in cell.split(",")}


def refused_in(name: str, refused: set[str]) -> set[str]:
    words = words_of(name.replace("in_place", ""))
    return words & (refused - ORDINARY_IN_SENTENCES if name.startswith("test_") else refused)


def test_the_glossary_lists_refused_words() -> None:
    assert {"told", "place", "verdict"} <= refused_words()


def test_identifiers_have_the_words_of_the_glossary() -> None:
    refused = refused_words()
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in [*CODE, *BESIDE_CODE]
        for line, name in bound_names(ast.parse(path.read_text(encoding="utf-8")))
        if refused_in(name, refused)
    ]
    assert offenders == []


def test_a_class_name_belongs_to_one_module() -> None:
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for path in CODE:
        if path.parent.name in NAMED_BY_KAFKA or path.name == "__init__.py":
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}
