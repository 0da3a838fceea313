"""Formats of YAML files as data: a schema says what a value must be, and reads it as a Python value.

A file's format is a table of schemas; only checks across keys are functions (`Schema.then`).
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Generic, NamedTuple, NoReturn, TypeVar

import yaml

from barnabas.base.yaml_nodes import YamlNode

ValueT_co = TypeVar("ValueT_co", covariant=True)
ResultT = TypeVar("ResultT")
EnumT = TypeVar("EnumT", bound=Enum)


class Schema(ABC, Generic[ValueT_co]):
    """What a value in a file must be."""

    @abstractmethod
    def read(self, node: YamlNode) -> ValueT_co:
        """Return the value.

        :raises YamlError: With line, key, value and what would be right.
        """

    def then(self, finish: Callable[[ValueT_co, YamlNode], ResultT]) -> "Custom[ResultT]":
        """Check or convert the value; `finish` fails with the node or one inside it."""
        return Custom(lambda node: finish(self.read(node), node), self)

    def to(self, convert: Callable[[ValueT_co], ResultT]) -> "Custom[ResultT]":
        """Convert the value."""
        return Custom(lambda node: convert(self.read(node)), self)


@dataclass(frozen=True, eq=False)
class Custom(Schema[ValueT_co]):
    """What a function reads; with `inner`, what it makes of the value of another schema."""

    reader: Callable[[YamlNode], ValueT_co]
    inner: Schema[object] | None = None

    def read(self, node: YamlNode) -> ValueT_co:
        return self.reader(node)


# Scalars


@dataclass(frozen=True, eq=False)
class Text(Schema[str]):
    """A scalar as it is written, of any type but null; it matches the regular expression `form`, if given."""

    form: str = ""
    expected: str = ""

    def read(self, node: YamlNode) -> str:
        text = node.text()
        if self.form and not re.fullmatch(self.form, text):
            node.fail(self.expected)
        return text


TEXT = Text()


@dataclass(frozen=True, eq=False)
class Word(Schema[ValueT_co]):
    """One of the words, which are in lower case; each stands for a value."""

    words: Mapping[str, ValueT_co]
    any_case: bool = False
    expected: str = ""

    def read(self, node: YamlNode) -> ValueT_co:
        written = node.node.value if isinstance(node.node, yaml.ScalarNode) else ""
        text = written.lower() if self.any_case else written
        if text not in self.words:
            node.fail(self.expected or f"must be {either(self.words)}")
        return self.words[text]


def word(*words: str) -> Word[str]:
    return Word({each: each for each in words})


def word_for(members: Iterable[EnumT]) -> Word[EnumT]:
    """The values of members of an enum."""
    return Word({each.value: each for each in members})


def by_name(members: Iterable[EnumT]) -> dict[str, EnumT]:
    """Members of an enum by their names in lower case, for `Word`."""
    return {each.name.lower(): each for each in members}


@dataclass(frozen=True, eq=False)
class Boolean(Schema[bool]):
    expected: str = "must be true or false"

    def read(self, node: YamlNode) -> bool:
        value = node.boolean
        if value is None:
            node.fail(self.expected)
        return value


@dataclass(frozen=True, eq=False)
class Numeric(Schema[float]):
    """A number; an int if it is whole."""

    expected: str = "must be a number"

    def read(self, node: YamlNode) -> float:
        number = node.number
        if number is None:
            node.fail(self.expected)
        return number


@dataclass(frozen=True, eq=False)
class Whole(Schema[int]):
    """A whole number from `least` to `most`."""

    least: int
    most: int | None = None

    def read(self, node: YamlNode) -> int:
        number = node.number
        most = float("inf") if self.most is None else self.most
        if not isinstance(number, int) or not self.least <= number <= most:
            bounds = f"of at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
            node.fail(f"must be a whole number {bounds}")
        return number


class RegularExpression(Schema[re.Pattern[str]]):
    def read(self, node: YamlNode) -> re.Pattern[str]:
        try:
            return re.compile(node.text())
        except re.error as error:
            node.fail(f"must be a regular expression: {error}")


# Choices by the kind of a value


@dataclass(frozen=True, eq=False)
class Nullable(Schema[ValueT_co]):
    """`null`, which stands for `value`, or what the schema reads."""

    schema: Schema[ValueT_co]
    value: ValueT_co

    def read(self, node: YamlNode) -> ValueT_co:
        return self.value if node.is_null else self.schema.read(node)


@dataclass(frozen=True, eq=False)
class ByKind(Schema[ValueT_co]):
    """A scalar, or a list or a mapping with a schema of its own; without one, it is read as a scalar."""

    scalar: Schema[ValueT_co]
    sequence: Schema[ValueT_co] | None = None
    mapping: Schema[ValueT_co] | None = None

    def read(self, node: YamlNode) -> ValueT_co:
        schema = None
        if isinstance(node.node, yaml.CollectionNode):
            schema = self.mapping if isinstance(node.node, yaml.MappingNode) else self.sequence
        return (schema or self.scalar).read(node)


# Collections


@dataclass(frozen=True, eq=False)
class SequenceOf(Schema[list[ValueT_co]]):
    """A list. Items may be told apart by a key, `distinct`, which is also the name of an attribute."""

    item: Schema[ValueT_co]
    distinct: str = ""
    empty: str = ""  #: the error for an empty list, unless it is valid

    def read(self, node: YamlNode) -> list[ValueT_co]:
        nodes = node.items()
        if self.empty and not nodes:
            node.fail(self.empty)
        values = [self.item.read(each) for each in nodes]
        if self.distinct:
            self._check_distinct(nodes, values)
        return values

    def _check_distinct(self, nodes: list[YamlNode], values: list[ValueT_co]) -> None:
        first: dict[Hashable, YamlNode] = {}
        for node, value in zip(nodes, values, strict=True):
            name, position = getattr(value, self.distinct), node.at(self.distinct)
            if name in first:
                position.fail(f"is repeated, first in line {first[name].line}")
            first[name] = position


@dataclass(frozen=True, eq=False)
class MappingOf(Schema[dict[str, ValueT_co]]):
    """A mapping with values of one schema."""

    value: Schema[ValueT_co]
    known: Collection[str] | None = None  #: the valid keys; None for any
    name: Schema[object] = TEXT  #: of the keys
    empty: str = ""  #: the error for an empty mapping, unless it is valid
    instead: str = ""  #: the error for another value; that is not shown then, as it may be a password

    def read(self, node: YamlNode) -> dict[str, ValueT_co]:
        found = _mapping(node, self.known, self.empty, self.instead)
        if self.name is not TEXT:  # which keys are already
            for each in found.values():
                self.name.read(node.key_of(each))
        read = self.value.read
        return {key: read(each) for key, each in found.items()}


def _mapping(node: YamlNode, known: Collection[str] | None, empty: str, instead: str) -> dict[str, YamlNode]:
    if instead and not isinstance(node.node, yaml.MappingNode):
        node.fail_hidden(instead)
    found = node.mapping(known)
    if empty and not found:
        node.fail(empty)
    return found


def _secret_reference(node: YamlNode) -> tuple[str, str]:
    """Show nothing of another value, which may be a password."""
    keys = [key.value for key, _ in node.node.value] if isinstance(node.node, yaml.MappingNode) else []
    if keys not in (["env"], ["file"]):
        node.fail_hidden("must be {env: NAME} or {file: PATH}, which say where the secret is")
    [(origin, name)] = node.mapping().items()
    return origin, name.text()


#: Where a secret is: `env` or `file`, and the name.
SECRET_REFERENCE = Custom(_secret_reference)


class Key(NamedTuple):
    """A key of a mapping."""

    schema: Schema[object]
    required: bool | str = False  #: what is missing without it, or just True
    into: str = ""  #: the parameter for its value, unless that is called like the key

    @property
    def purpose(self) -> str:
        """For the error when it is missing."""
        if isinstance(self.required, str):
            return f": {self.required}"
        return f": {either(self.schema.words)}" if isinstance(self.schema, Word) else ""


class Keyed(Schema[ValueT_co]):
    """A mapping of given keys, passed to `build` by name; keys that are left out have the defaults of `build`.

    :param context: Arguments that depend on where the mapping is; keys come first.
    :param empty: The error for an empty mapping, unless it is valid.
    :param instead: The error for another value; that is not shown then, as it may be a password.
    """

    def __init__(
        self,
        build: Callable[..., ValueT_co],
        keys: Mapping[str, Schema[object] | Key],
        *,
        context: Mapping[str, Callable[[YamlNode], object]] = MappingProxyType({}),
        empty: str = "",
        instead: str = "",
    ) -> None:
        self.build = build
        self.keys = {key: each if isinstance(each, Key) else Key(each) for key, each in keys.items()}
        self.empty = empty
        self._context = context
        self._instead = instead
        self._parts = {key: (each.into or key, each.schema.read) for key, each in self.keys.items()}
        self._required = frozenset(key for key, each in self.keys.items() if each.required)
        if build is not dict:
            self._check_parameters()

    def _check_parameters(self) -> None:
        """Check that `build` has these parameters, and that every other one has a default."""
        names = {key: name for key, (name, _) in self._parts.items()}
        signature = inspect.signature(self.build)
        signature.bind_partial(**dict.fromkeys(names.values()))
        signature.bind(**dict.fromkeys([*self._context, *(names[key] for key in self._required)]))

    def read(self, node: YamlNode) -> ValueT_co:
        found = _mapping(node, self.keys, self.empty, self._instead)
        if not self._required <= found.keys():
            self._fail_missing(node, found)
        arguments = {name: read(node) for name, read in self._context.items()}
        parts = self._parts
        for key, each in found.items():
            name, read = parts[key]
            arguments[name] = read(each)
        return self.build(**arguments)

    def _fail_missing(self, node: YamlNode, found: Mapping[str, YamlNode]) -> NoReturn:
        missing = [
            f"{key}{each.purpose}" for key, each in self.keys.items() if each.required and key not in found
        ]
        node.fail(f"must have {', '.join(missing)}")


class Variants(Schema[ValueT_co]):
    """A mapping that has exactly one of some keys, which determines its schema: a `Keyed`, perhaps converted."""

    def __init__(self, variants: Mapping[str, Schema[ValueT_co]]) -> None:
        self.variants = variants
        self._keys = {name: _keyed(each).keys for name, each in variants.items()}
        self._known = {key: None for keys in self._keys.values() for key in keys}  # in order

    def read(self, node: YamlNode) -> ValueT_co:
        found = node.mapping(self._known)
        chosen = [name for name in self.variants if name in found]
        if len(chosen) != 1:
            has = f"it has {', '.join(chosen) or 'none'}"
            node.fail(f"must have exactly one of {', '.join(self.variants)}; {has}")
        [name] = chosen
        for key, each in found.items():
            if key not in self._keys[name]:
                others = [other for other, keys in self._keys.items() if key in keys]
                each.fail(f"can only be used with {' or '.join(others)}")
        return self.variants[name].read(node)


def _keyed(schema: Schema[object]) -> Keyed[object]:
    while isinstance(schema, Custom) and schema.inner is not None:
        schema = schema.inner
    assert isinstance(schema, Keyed), schema
    return schema


def either(words: Collection[str]) -> str:
    """Enumerate words: `a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
