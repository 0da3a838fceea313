"""Versions and schemas as JSON."""

import json
from typing import Any

from barnabas.registry import errors
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import RegisteredVersion, schema_fields
from barnabas.registry.registration import parsed_of
from barnabas.registry.schemas import InvalidSchema, SchemaText, SchemaType
from barnabas.registry.standalone import serialized_descriptor, standalone_schema
from barnabas.registry.state import RegistryState

#: Values of the parameter format that leave the text as it is.
_UNCHANGED = ("", "default", "ignore_extensions")


def version_entity(state: RegistryState, version: RegisteredVersion, text_format: str = "") -> dict[str, Any]:
    """Return a version."""
    entity: dict[str, Any] = {"subject": version.subject, "version": version.version, "id": version.id}
    if version.deleted:
        entity["deleted"] = True
    return entity | schema_entity(state, version.schema, text_format)


def schema_entity(state: RegistryState, schema: SchemaText, text_format: str = "") -> dict[str, Any]:
    """Return a schema alone."""
    return {**schema_fields(schema), "schema": formatted(state, schema, text_format)}


def metadata_properties(schema: SchemaText) -> dict[str, Any] | None:
    """Return the properties in the metadata of a schema, or None. Clients may send metadata of any form."""
    metadata = json.loads(schema.metadata or "null")
    properties = metadata.get("properties") if isinstance(metadata, dict) else None
    return properties if isinstance(properties, dict) else None


def formatted(state: RegistryState, schema: SchemaText, text_format: str) -> str:
    """Return the text in a format: of Protobuf `serialized`, a descriptor in base64; of Avro `resolved`, with all
    types.

    :raises RegistryError: If there is no such format.
    """
    if text_format in _UNCHANGED:
        return schema.text
    try:
        if text_format == "serialized":
            is_text = schema.type is not SchemaType.PROTOBUF
            return schema.text if is_text else serialized_descriptor(parsed_of(state, schema))
        if text_format == "resolved" and schema.type is SchemaType.AVRO:
            return standalone_schema(parsed_of(state, schema)).decode()
    except InvalidSchema as error:
        raise RegistryError(errors.INVALID_SCHEMA, str(error)) from None
    message = f"format '{text_format}' is not supported for schemas of type {schema.type}"
    raise RegistryError(errors.INVALID_REQUEST, message)
