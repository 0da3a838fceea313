"""Whether a schema of JSON Schema accepts every value that another accepts.

A schema is a conjunction: its keywords, each schema in allOf, and each anyOf, oneOf and not. The reader's schema
accepts the writer's values if every part of it follows from some part of the writer's. What cannot be shown in this way
counts as incompatible; oneOf is taken as anyOf.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from barnabas.registry.json_schema.documents import JsonNode
from barnabas.registry.json_schema.keywords import SUMS, keyword_problems
from barnabas.registry.schemas import Incompatibility

#: The most work of a comparison: a name that is compared with a pattern is one step, a pair of schemas more.
_STEPS_MAX = 1_000_000
_PAIR_STEPS = 50
_APPLICATORS = ("allOf", *SUMS, "not", "$ref")


class _Split(NamedTuple):
    """The parts of a schema."""

    keywords: JsonNode
    conjuncts: tuple[JsonNode, ...]  #: of allOf
    sums: tuple[tuple[JsonNode, ...], ...]  #: branches of anyOf and of oneOf
    excluded: JsonNode | None  #: of not


def accepting_problems(reader: JsonNode, writer: JsonNode) -> list[Incompatibility]:
    """Return why the reader does not accept some values that the writer accepts."""
    try:
        return SchemaComparison().compare(writer, reader, "")
    except _TooComplex:
        return [Incompatibility("TOO_COMPLEX", "", "the schemas are too complex to be compared")]


class _TooComplex(Exception):
    """A comparison takes more steps than it may."""


class SchemaComparison:
    """Compares two documents."""

    def __init__(self) -> None:
        self._compared: set[tuple[int, int]] = set()  #: pairs that are compared further out
        self._joined: dict[tuple[int, ...], dict[str, Any]] = {}  #: by the schemas in their allOf
        self._steps_left = _STEPS_MAX

    def all_of(self, schemas: Sequence[Any]) -> Any:
        """Return the schema of what all schemas accept; for the same ones the same, as recursion is found by that."""
        if len(schemas) == 1:
            return schemas[0]
        return self._joined.setdefault(tuple(map(id, schemas)), {"allOf": list(schemas)})

    def spend(self, steps: int) -> None:
        """Count steps, as in `_STEPS_MAX`.

        :raises _TooComplex: If there are too many.
        """
        self._steps_left -= steps
        if self._steps_left < 0:
            raise _TooComplex

    def compare(self, writer: JsonNode, reader: JsonNode, path: str) -> list[Incompatibility]:
        """Return why the reader does not accept some values that the writer accepts."""
        writer, reader = writer.resolved(), reader.resolved()
        if _accepts_all(reader) or writer.contents is False:
            return []
        if reader.contents is False:
            return [Incompatibility("TYPE_CHANGED", path, "the reader accepts no value here")]
        pair = (id(writer.contents), id(reader.contents))
        if pair in self._compared:
            return []
        self.spend(_PAIR_STEPS)
        self._compared.add(pair)
        try:
            return self._compare_parts(_split(writer), _split(reader), path)
        finally:
            self._compared.discard(pair)

    def _compare_parts(self, writer: _Split, reader: _Split, path: str) -> list[Incompatibility]:
        problems = []
        if not _accepts_all(reader.keywords):
            problems += self._follows(writer, reader.keywords, path)
        for index, conjunct in enumerate(reader.conjuncts):
            problems += self._follows(writer, conjunct, f"{path}/allOf/{index}")
        for branches in reader.sums:
            problems += self._sum(writer, branches, path)
        if reader.excluded is not None:
            problems += self._exclusion(writer, reader.excluded, path)
        return problems

    def _follows(self, writer: _Split, part: JsonNode, path: str) -> list[Incompatibility]:
        """Return why a part of the reader does not follow from any part of the writer."""
        part = part.resolved()
        if _accepts_all(part):
            return []
        if part.contents is False:
            return [Incompatibility("TYPE_CHANGED", path, "the reader accepts no value here")]
        split = _split(part)
        if split.conjuncts or split.sums or split.excluded is not None:
            return self._compare_parts(writer, split, path)
        first: list[Incompatibility] | None = None
        for conjunct in (writer.keywords, *writer.conjuncts):
            found = self._keywords(conjunct, part, path)
            if not found:
                return []
            first = found if first is None else first
        for branches in writer.sums:
            found = [problem for branch in branches for problem in self.compare(branch, part, path)]
            if not found:
                return []
            first = found if _accepts_all(writer.keywords) else first
        assert first is not None
        return first

    def _keywords(self, writer: JsonNode, reader: JsonNode, path: str) -> list[Incompatibility]:
        writer = writer.resolved()
        if writer.contents is False:
            return []
        split = _split(writer)
        if split.conjuncts or split.sums:
            return self._follows(split, reader, path)
        return keyword_problems(self, writer, reader, path)

    def _sum(self, writer: _Split, branches: tuple[JsonNode, ...], path: str) -> list[Incompatibility]:
        """Return why values of the writer belong to no branch of the reader."""
        alternatives = [_by_type(conjunct) for conjunct in (writer.keywords, *writer.conjuncts)]
        for written in (*alternatives, *writer.sums):
            if all(any(not self.compare(each, branch, path) for branch in branches) for each in written):
                return []
        text = "not every value of the writer belongs to one of the reader's alternatives"
        return [Incompatibility("SUM_TYPE_NARROWED", path, text)]

    def _exclusion(self, writer: _Split, excluded: JsonNode, path: str) -> list[Incompatibility]:
        if writer.excluded is not None and not self.compare(excluded, writer.excluded, f"{path}/not"):
            return []
        return [
            Incompatibility(
                "NOT_TYPE_EXTENDED", f"{path}/not", "the reader excludes values that the writer does not"
            )
        ]


def _by_type(node: JsonNode) -> tuple[JsonNode, ...]:
    """Split a schema of several types into one for each."""
    kinds = node.contents.get("type") if isinstance(node.contents, dict) else None
    if not isinstance(kinds, list):
        return (node,)
    return tuple(node._replace(contents={**node.contents, "type": kind}) for kind in kinds)


def _accepts_all(node: JsonNode) -> bool:
    return node.contents is True or (isinstance(node.contents, dict) and not any(_asserting(node.contents)))


def _asserting(contents: dict[str, Any]) -> Iterator[str]:
    """Yield the keywords that refuse values."""
    return (key for key in contents if key not in _ANNOTATIONS)


_IDENTIFIERS = (
    "$id",
    "id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
    "$comment",
)
_ANNOTATIONS = frozenset(
    (
        *_IDENTIFIERS,
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("format", "contentEncoding", "contentMediaType", "javaType", "existingJavaType"),
    )
)


def _split(node: JsonNode) -> _Split:
    contents = node.contents
    if not isinstance(contents, dict):
        return _Split(node, (), (), None)
    keywords = {key: value for key, value in contents.items() if key not in _APPLICATORS}
    sums = tuple(tuple(map(node.child, contents[key])) for key in SUMS if key in contents)
    excluded = node.child(contents["not"]) if "not" in contents else None
    conjuncts = tuple(map(node.child, contents.get("allOf", ())))
    if "$ref" in contents:  # with keywords beside it
        conjuncts = (*conjuncts, node.target())
    same = node if len(keywords) == len(contents) else node._replace(contents=keywords)
    return _Split(same, conjuncts, sums, excluded)
