"""A schema of JSON Schema with its references."""

import json
from functools import cached_property
from typing import Any, Self

from barnabas.registry.json_schema.compatibility import accepting_problems
from barnabas.registry.json_schema.documents import JsonNode, check_document, document
from barnabas.registry.schemas import Dependencies, Incompatibility, InvalidSchema, ParsedSchema


class JsonSchema:
    """A schema of JSON Schema, of any draft; without $schema of draft 7."""

    def __init__(self, root: JsonNode) -> None:
        self.root = root

    @classmethod
    def parse(cls, text: str, dependencies: Dependencies, *, is_new: bool) -> Self:
        """:raises InvalidSchema: With what is wrong."""
        root = document(_loaded(text), {name: _loaded(each) for name, each in dependencies.items()})
        if is_new:
            try:
                check_document(root)
            except RecursionError:
                raise InvalidSchema("the schema is nested too deeply") from None
        return cls(root)

    @cached_property
    def canonical(self) -> str:
        return json.dumps(self.root.contents, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def normalized(self) -> str:
        return json.dumps(self.root.contents, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def problems_with(self, writer: ParsedSchema) -> list[Incompatibility]:
        """Return why this schema refuses some values of another."""
        assert isinstance(writer, JsonSchema)
        return accepting_problems(self.root, writer.root)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
