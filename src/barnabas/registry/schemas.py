"""Schemas as clients register them, and what every type of schema can do."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn, Protocol


class SchemaType(StrEnum):
    """The type of a schema, as in the field schemaType."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"

    @property
    def label(self) -> str:
        """The name for people."""
        return "JSON" if self is SchemaType.JSON else self.capitalize()


class SchemaReference(NamedTuple):
    """A schema that another one uses, and the name by which it does: of a type, of a document or of a file."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class SchemaText:
    """A schema as a client wrote it.

    `metadata` and `rule_set` are JSON texts of clients, which the registry keeps; empty for none.
    """

    type: SchemaType
    text: str
    references: tuple[SchemaReference, ...] = ()
    metadata: str = ""
    rule_set: str = ""


#: Texts of the schemas that a schema uses, directly or not, by name. One comes after those that it uses.
Dependencies = Mapping[str, str]


class InvalidSchema(Exception):
    """A text is not a schema of its type."""


def read_json(text: str, *, is_new: bool) -> Any:
    """Return the JSON of a text.

    :param is_new: Whether numbers must be those of JSON: Java's libraries cannot read NaN and infinity.
    :raises ValueError: If it is not JSON.
    :raises RecursionError: If it is nested too deeply.
    """
    return json.loads(text, parse_float=_finite, parse_constant=_refuse) if is_new else json.loads(text)


def _finite(text: str) -> float:
    return number if math.isfinite(number := float(text)) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    message = f"{text} is not a number of JSON"
    raise ValueError(message)


class Incompatibility(NamedTuple):
    """Data of the writer's schema that the reader's schema cannot read."""

    error: str  #: in capitals, for programs
    path: str  #: in the reader's schema, or in the writer's for what the reader lacks
    description: str

    def __str__(self) -> str:
        return f"{self.error} at {self.path or '/'}: {self.description}"


class ParsedSchema(Protocol):
    """A valid schema."""

    @property
    def canonical(self) -> str:
        """The form that is stored: equal for texts that differ only in their layout."""

    @property
    def normalized(self) -> str:
        """The form that is stored with normalize=true: equal for texts that differ in order, too."""

    def problems_with(self, writer: "ParsedSchema") -> list[Incompatibility]:
        """Return why this schema cannot read some data that was written with another of its type."""
