"""A schema of JSON Schema with its references."""

import json
from functools import cached_property
from typing import Any, Self

from barnabas.registry.json_schema.compatibility import accepting_problems
from barnabas.registry.json_schema.documents import JsonDocument, check_document, document
from barnabas.registry.json_schema.validators import validator_class, value_validator_class
from barnabas.registry.schemas import Dependencies, Incompatibility, InvalidSchema, ParsedSchema, read_json


class JsonSchema:
    """A schema of JSON Schema, of any draft; without $schema of draft 7."""

    def __init__(self, document: JsonDocument) -> None:
        self.root = document.root
        self._registry = document.registry

    @classmethod
    def parse(cls, text: str, dependencies: Dependencies, *, is_new: bool) -> Self:
        """:raises InvalidSchema: With what is wrong."""
        found = document(
            _loaded(text, is_new=is_new),
            {name: _loaded(each, is_new=False) for name, each in dependencies.items()},
        )
        if is_new:
            try:
                check_document(found.root)
            except RecursionError:
                raise InvalidSchema("the schema is nested too deeply") from None
        return cls(found)

    @cached_property
    def canonical(self) -> str:
        return json.dumps(self.root.contents, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def normalized(self) -> str:
        return json.dumps(self.root.contents, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def validator(self) -> Any:
        """Return a validator of values."""
        contents = self.root.contents
        return value_validator_class(validator_class(contents))(contents, registry=self._registry)

    def problems_with(self, writer: ParsedSchema) -> list[Incompatibility]:
        """Return why this schema refuses some values of another."""
        assert isinstance(writer, JsonSchema)
        try:
            return accepting_problems(self.root, writer.root)
        except (AttributeError, InvalidSchema, LookupError, TypeError, ValueError):
            # stored by another registry, or what $ref points at: no metaschema has checked it
            return [Incompatibility("INVALID_SCHEMA", "", "one of the schemas is not valid")]


def _loaded(text: str, *, is_new: bool) -> Any:
    try:
        return read_json(text, is_new=is_new)
    except ValueError as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
