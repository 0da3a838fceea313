"""Write docs/declared.schema.json, with which editors validate declared states, from the schemas of the reader.

Run it after a change to what can be declared: `python tools/generate_declared_schema.py`.
"""

import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.base.yaml_schema import (
    Custom,
    Keyed,
    MappingOf,
    Nullable,
    Numeric,
    Schema,
    SequenceOf,
    Text,
    Whole,
    Word,
)
from barnabas.config.definition import ConfigKey, UpdateMode
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, CLIENT_QUOTA_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.declared import parser as reading

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "declared.schema.json"

JsonSchema = dict[str, Any]

TEXT = {"type": ["string", "number", "boolean"]}
NAME = {"type": [*TEXT["type"], "null"]}
VALUE = {"$ref": "#/$defs/value"}
SECRET = {"$ref": "#/$defs/secret"}
SETTING = {"anyOf": [VALUE, SECRET]}


def closed(properties: Mapping[str, JsonSchema], **more: Any) -> JsonSchema:
    """Describe a mapping of exactly these keys."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}


def with_known(keys: Mapping[str, JsonSchema], others: JsonSchema) -> JsonSchema:
    """Describe a mapping of keys that editors offer; others may be those of another Kafka."""
    return {"type": "object", "properties": dict(keys), "additionalProperties": others}


def configs(keys: Iterable[ConfigKey]) -> JsonSchema:
    """Describe values by key."""
    known = {key.name: {**SETTING, "description": key.description} for key in keys if key.listed}
    return with_known(known, SETTING)


def quota_values() -> JsonSchema:
    number = {"type": ["number", "null"]}
    keys = [key.name for key in (*CLIENT_QUOTA_KEYS.values(), *ADDRESS_QUOTA_KEYS.values())]
    return with_known(dict.fromkeys(keys, number), number)


#: What functions of the reader check, and keys that it takes as they are, but editors should know.
SPECIAL: Mapping[Schema[object], JsonSchema] = {
    reading.VALUE: VALUE,
    reading.SECRET: SECRET,
    reading.SETTING: SETTING,
    reading.TOPIC_CONFIGS: configs(TOPIC_KEYS.values()),
    reading.GROUP_CONFIGS: configs(GROUP_KEYS.values()),
    reading.BROKER_CONFIGS: configs(
        key for key in BROKER_KEYS.values() if key.mode is not UpdateMode.READ_ONLY
    ),
    reading.CLIENT_METRICS_CONFIGS: configs(CLIENT_METRICS_KEYS.values()),
    reading.ENTITY: {
        "anyOf": [
            closed({"user": NAME, "client-id": NAME}, minProperties=1),
            closed({"ip": NAME}, minProperties=1),
        ]
    },
    reading.QUOTA_VALUES: quota_values(),
}


def described(schema: Schema[object]) -> JsonSchema:
    """Return the JSON schema of a schema of the reader."""
    if schema in SPECIAL:
        return SPECIAL[schema]
    match schema:
        case Custom(inner=Schema() as inner):
            return described(inner)
        case Text():
            form = {"type": "string", "pattern": f"^(?:{schema.form})$"}
            return form if schema.form else TEXT
        case Word():
            return {"enum": [str(word) for word in schema.words]}
        case Whole():
            return {"type": "integer", "minimum": schema.least, "maximum": schema.most}
        case Numeric():
            return {"type": "number"}
        case Nullable():
            value = described(schema.schema)
            return {**value, "type": [value["type"], "null"]}
        case SequenceOf():
            return {"type": "array", "items": described(schema.item)}
        case MappingOf():
            return described_mapping(schema)
        case Keyed():
            return described_keyed(schema)
    raise TypeError(f"{type(schema).__name__} has no JSON schema: add it here or to SPECIAL")


def described_mapping(schema: MappingOf[object]) -> JsonSchema:
    value = described(schema.value)
    more: JsonSchema = {"minProperties": 1} if schema.empty else {}
    if schema.known is not None:
        return closed(dict.fromkeys(schema.known, value), **more)
    if isinstance(schema.name, Text) and schema.name.form:
        more["propertyNames"] = {"pattern": f"^(?:{schema.name.form})$"}
    return {"type": "object", "additionalProperties": value, **more}


def described_keyed(schema: Keyed[object]) -> JsonSchema:
    parameters = inspect.signature(schema.build).parameters
    required = [key for key, each in schema.keys.items() if each.required]
    properties = {
        key: {**described(each.schema), **default(each.schema, parameters[each.into or key].default)}
        for key, each in schema.keys.items()
    }
    return closed(properties, **({"required": required} if required else {}))


def default(schema: Schema[object], value: object) -> JsonSchema:
    """Return the value of a key that is left out."""
    if isinstance(schema, Text):
        return {"default": value} if isinstance(value, str) else {}
    words = schema.words.items() if isinstance(schema, Word) else ()
    return next(({"default": word} for word, meaning in words if meaning is value), {})


def schema() -> JsonSchema:
    """Return the whole schema."""
    whole = described(reading.STATE)
    whole["properties"][reading.PRUNE]["description"] = (
        "Sections in which everything that is not mentioned is deleted; configs: keys of resources."
    )
    acl = whole["properties"]["acls"]["items"]
    acl["properties"]["principal"]["examples"] = ["User:alice"]
    acl["anyOf"] = [
        {"required": ["resource_name"]},
        {"properties": {"resource_type": {"const": "cluster"}}},
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The declared state of a Kafka cluster",
        **whole,
        "$defs": {
            "value": {"type": [*NAME["type"], "array"], "items": TEXT},
            "secret": closed({"env": TEXT, "file": TEXT}, minProperties=1, maxProperties=1),
        },
    }


def render() -> str:
    """Return the text of the document."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
