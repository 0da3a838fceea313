"""A schema of Avro with its references."""

from collections.abc import Mapping
from functools import cached_property
from typing import Self

from barnabas.registry.avro.canonical import canonical_form
from barnabas.registry.avro.compatibility import reading_problems
from barnabas.registry.avro.model import AvroType
from barnabas.registry.avro.parser import parse_avro
from barnabas.registry.schemas import Dependencies, Incompatibility, ParsedSchema


class AvroSchema:
    """A schema of Avro."""

    def __init__(self, root: AvroType, imported: Mapping[str, AvroType]) -> None:
        """:param imported: Types that references define, by full name."""
        self.root = root
        self._imported = imported

    @classmethod
    def parse(cls, text: str, dependencies: Dependencies, *, is_new: bool) -> Self:
        """:raises InvalidSchema: With what is wrong."""
        known: dict[str, AvroType] = {}
        for dependency in dependencies.values():
            known |= parse_avro(dependency, known, is_new=False)[1]
        return cls(parse_avro(text, known, is_new=is_new)[0], known)

    @cached_property
    def canonical(self) -> str:
        return canonical_form(self.root, self._imported)

    @cached_property
    def standalone(self) -> str:
        """The schema with the types that references define."""
        return canonical_form(self.root, {})

    @cached_property
    def normalized(self) -> str:
        return canonical_form(self.root, self._imported, sorts=True)

    def problems_with(self, writer: ParsedSchema) -> list[Incompatibility]:
        """Return why this schema cannot read some data of another."""
        assert isinstance(writer, AvroSchema)
        return reading_problems(self.root, writer.root)
