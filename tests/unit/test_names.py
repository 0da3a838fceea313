"""Identifiers have the words of docs/glossary.md, and a class name belongs to one package."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = sorted(
    path
    for package in ("barnabas", "pyspark_barnabas", "pyspark_barnabas_batches")
    for path in (ROOT / "src" / package).rglob("*.py")
)

#: Words that docs/glossary.md replaces; they were used for many different things.
REFUSED = frozenset(
    {
        *(
            "adopt",
            "adopted",
            "adoption",
            "bearer",
            "bearers",
            "chore",
            "chores",
            "dice",
            "fate",
            "fates",
            "forget",
        ),
        *("handover", "handovers", "judge", "judged", "judges", "noun", "nouns", "remark", "remarks", "said"),
        *(
            "settle",
            "settled",
            "settles",
            "surroundings",
            "tell",
            "telling",
            "tells",
            "thing",
            "things",
            "told",
        ),
        *("verdict", "verdicts", "whose", "wish", "wishes"),
    }
)

#: Packages of messages, whose names are those of Kafka's schemas.
NAMED_BY_KAFKA = frozenset({"messages", "consumer_protocol", "coordinator_records"})


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


def test_identifiers_have_the_words_of_the_glossary() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in CODE
        for line, name in bound_names(ast.parse(path.read_text(encoding="utf-8")))
        if words_of(name) & REFUSED
    ]
    assert found == []


def test_a_class_name_belongs_to_one_module() -> None:
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for path in CODE:
        if path.parent.name in NAMED_BY_KAFKA or path.name == "__init__.py":
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}
