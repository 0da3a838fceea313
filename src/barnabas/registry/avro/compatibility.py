"""Whether a reader's schema of Avro can read data of a writer's (schema resolution of Avro's specification)."""

from barnabas.registry.avro.model import NAMED, NO_DEFAULT, AvroField, AvroType
from barnabas.registry.schemas import Incompatibility

#: Types of a writer that a reader may promote to its own.
_PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
#: The most pairs of types that are compared; the branches of two unions multiply.
_STEPS_MAX = 500_000
#: Fields and symbols that take as long as a pair.
_STEP_PARTS = 10


def reading_problems(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Return what keeps the reader from reading some data of the writer."""
    try:
        return _Resolution().compare(reader, writer, "")
    except _TooComplex:
        return [Incompatibility("TOO_COMPLEX", "", "the schemas are too complex to be compared")]


class _TooComplex(Exception):
    """A comparison takes more steps than it may."""


class _Resolution:
    def __init__(self) -> None:
        self._steps_left = _STEPS_MAX
        #: Pairs that are compared further out, and pairs without problems, in the order in which they began. A
        #: recursive type is as compatible as the rest of it: a pair without problems relies on those before it.
        self._compatible: dict[tuple[int, int], None] = {}
        self._incompatible: dict[tuple[int, int], Incompatibility] = {}  #: with the first problem of each

    def compare(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        self._spend(1)
        if writer.kind == "union":
            return self._of_union(reader, writer, path)
        if reader.kind == "union":
            return self._to_union(reader, writer, path)
        if reader.kind != writer.kind:
            if writer.kind in _PROMOTIONS.get(reader.kind, ()):
                return []
            text = f"the reader's type is {reader.full_name}, the writer's {writer.full_name}"
            return [Incompatibility("TYPE_MISMATCH", path, text)]
        if reader.kind in NAMED:
            return self._named(reader, writer, path)
        if reader.items is not None:
            assert writer.items is not None
            return self.compare(reader.items, writer.items, f"{path}/{_step(reader)}")
        return []

    def _spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise _TooComplex

    def _of_union(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        problems = []
        for index, branch in enumerate(writer.branches):
            found = self.compare(reader, branch, path)
            if found and reader.kind == "union":
                text = f"the reader's union has no branch for the writer's {branch.full_name}"
                found = [Incompatibility("MISSING_UNION_BRANCH", f"{path}/{index}", text)]
            problems += found
        return problems

    def _to_union(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        if any(
            not self.compare(branch, writer, f"{path}/{index}")
            for index, branch in enumerate(reader.branches)
        ):
            return []
        text = f"the reader's union has no branch for the writer's {writer.full_name}"
        return [Incompatibility("MISSING_UNION_BRANCH", path, text)]

    def _named(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair in self._compatible:
            return []
        if pair in self._incompatible:
            return [self._incompatible[pair]]
        self._compatible[pair] = None
        problems = [*_names(reader, writer, path), *self._contents(reader, writer, path)]
        if problems:
            self._incompatible[pair] = problems[0]
            while self._compatible.popitem()[0] != pair:
                pass
        return problems

    def _contents(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        parts = (reader.fields, writer.fields, reader.symbols, writer.symbols)
        self._spend(sum(map(len, parts)) // _STEP_PARTS)
        if reader.kind == "enum":
            known = frozenset(reader.symbols)
            missing = [symbol for symbol in writer.symbols if symbol not in known]
            if not missing or reader.default is not None:
                return []
            text = f"the reader's enum has no default and no symbols {', '.join(missing)}"
            return [Incompatibility("MISSING_ENUM_SYMBOLS", f"{path}/symbols", text)]
        if reader.kind == "fixed":
            if reader.size == writer.size:
                return []
            text = f"the reader expects {reader.size} bytes, the writer wrote {writer.size}"
            return [Incompatibility("FIXED_SIZE_MISMATCH", f"{path}/size", text)]
        written = {field.name: field for field in writer.fields}
        problems = []
        for index, field in enumerate(reader.fields):
            problems += self._field(field, written, f"{path}/fields/{index}")
        return problems

    def _field(self, field: AvroField, fields: dict[str, AvroField], path: str) -> list[Incompatibility]:
        names = (field.name, *field.aliases)
        written = next((fields[name] for name in names if name in fields), None)
        if written is not None:
            return self.compare(field.type, written.type, f"{path}/type")
        if field.default is not NO_DEFAULT:
            return []
        text = f"the writer has no field '{field.name}', and the reader no default for it"
        return [Incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", path, text)]


def _names(reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
    """Namespaces may differ, as in Java's library."""
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    text = f"the reader's {reader.kind} is '{reader.full_name}', the writer's '{writer.full_name}'"
    return [Incompatibility("NAME_MISMATCH", f"{path}/name", text)]


def _step(node: AvroType) -> str:
    return "items" if node.kind == "array" else "values"
