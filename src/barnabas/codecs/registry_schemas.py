"""Schemas of a registry by their ids."""

from typing import NamedTuple

from barnabas.codecs.errors import encodable
from barnabas.registry.client import RegistryClient, RegistryUnavailable
from barnabas.registry.errors import RegistryError
from barnabas.registry.schemas import InvalidSchema, ParsedSchema, SchemaType

_NOT_FOUND = 404


class RegisteredSchema(NamedTuple):
    """A schema of the registry with its references."""

    type: SchemaType
    parsed: ParsedSchema


class RegistrySchemas:
    """Asks the registry once for each id."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._schemas: dict[int, RegisteredSchema | str] = {}
        self._unknown_ids: set[int] = set()

    def schema(self, schema_id: int) -> RegisteredSchema | str:
        """Return a schema, or the reason why values with that id cannot be decoded.

        :raises RegistryUnavailable: The registry does not respond, or refuses access.
        """
        known = self._schemas.get(schema_id)
        if known is None:
            known = self._schemas[schema_id] = self._fetched(schema_id)
        return known

    def expire_unknown(self) -> None:
        """Ask again for ids that the registry did not know: it may have been restored, or behind its leader."""
        for schema_id in self._unknown_ids:
            del self._schemas[schema_id]
        self._unknown_ids.clear()

    def _fetched(self, schema_id: int) -> RegisteredSchema | str:
        try:
            schema = self._client.by_id(schema_id).schema
            return RegisteredSchema(schema.type, self._client.parsed(schema))
        except RegistryError as error:
            if error.status != _NOT_FOUND:
                raise RegistryUnavailable(f"the schema registry refuses access: {error}") from error
            self._unknown_ids.add(schema_id)
            return unusable(schema_id, error)
        except InvalidSchema as error:
            return unusable(schema_id, error)

    def statistics(self) -> dict[str, int]:
        return {"schemas": len(self._schemas) - len(self._unknown_ids), "unknown": len(self._unknown_ids)}


def unusable(schema_id: int, reason: object) -> str:
    """Return why values with an id cannot be decoded."""
    return f"its schema id is {schema_id}, whose schema cannot be used: {encodable(str(reason))}"
