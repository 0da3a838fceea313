"""Write docs/declared.schema.json, with which editors validate declared states.

Run it after a change to what can be declared: `python tools/generate_declared_schema.py`.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.config.definition import ConfigKey, UpdateMode
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, CLIENT_QUOTA_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.declared import parser as reading
from barnabas.declared.state import PRUNABLE, Section
from barnabas.wire.scram import MECHANISMS_BY_TITLE

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "declared.schema.json"

Schema = dict[str, Any]

VALUE = {"$ref": "#/$defs/value"}
SECRET = {"$ref": "#/$defs/secret"}
COUNT = {"type": "integer", "minimum": 1}


def record(properties: Mapping[str, Any], required: Iterable[str] = (), **more: Any) -> Schema:
    """Describe a mapping with exactly these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def by_name(each: Schema, **more: Any) -> Schema:
    """Describe a mapping from names to items of one schema."""
    return {"type": "object", "additionalProperties": each, **more}


def configs(keys: Iterable[ConfigKey]) -> Schema:
    """Describe values by key; unknown keys may be those of another Kafka."""
    known = {
        key.name: {"anyOf": [VALUE, SECRET], "description": key.description} for key in keys if key.listed
    }
    return {
        "type": "object",
        "properties": known,
        "additionalProperties": {"anyOf": [VALUE, SECRET]},
    }


def acl() -> Schema:
    """Describe one entry of `acls`."""
    return record(
        {
            "resource_type": {"enum": list(reading.RESOURCE_TYPES)},
            "resource_name": {"type": ["string", "number"]},
            "pattern_type": {"enum": list(reading.PATTERN_TYPES), "default": "literal"},
            "principal": {"type": "string", "pattern": ":", "examples": ["User:alice"]},
            "host": {"type": "string", "default": "*"},
            "operations": {"type": "array", "items": {"enum": list(reading.OPERATIONS)}},
            "permission": {"enum": list(reading.PERMISSIONS), "default": "allow"},
        },
        ("resource_type", "principal", "operations"),
        anyOf=[{"required": ["resource_name"]}, {"properties": {"resource_type": {"const": "cluster"}}}],
    )


def quota() -> Schema:
    """Describe one entry of `quotas`."""
    name = {"type": ["string", "number", "null"]}
    of_user = record({"user": name, "client-id": name}, minProperties=1)
    keys = [key.name for key in (*CLIENT_QUOTA_KEYS.values(), *ADDRESS_QUOTA_KEYS.values())]
    number = {"type": ["number", "null"]}
    values = {"type": "object", "properties": dict.fromkeys(keys, number), "additionalProperties": number}
    entity = {"anyOf": [of_user, record({"ip": name}, ("ip",))]}
    return record({"entity": entity, "values": values}, reading.QUOTA_KEYS)


def credential() -> Schema:
    """Describe a user's credential for one mechanism."""
    bounds = {"minimum": reading.ITERATIONS_MIN, "maximum": reading.ITERATIONS_MAX}
    return record({"iterations": {"type": "integer", **bounds}, "password": SECRET})


def broker() -> Schema:
    """Describe one broker, or all."""
    dynamic = [key for key in BROKER_KEYS.values() if key.mode is not UpdateMode.READ_ONLY]
    return record({"configs": configs(dynamic), "expect": by_name(VALUE)})


def schema() -> Schema:
    """Return the whole schema."""
    mechanisms = record(dict.fromkeys(MECHANISMS_BY_TITLE, credential()), minProperties=1)
    topic = record(
        {"partitions": COUNT, "replication_factor": COUNT, "configs": configs(TOPIC_KEYS.values())},
        type=["object", "null"],
    )
    sections = {
        Section.TOPICS: by_name(topic),
        Section.ACLS: {"type": "array", "items": acl()},
        Section.QUOTAS: {"type": "array", "items": quota()},
        Section.USERS: by_name(mechanisms),
        Section.GROUPS: by_name(record({"configs": configs(GROUP_KEYS.values())})),
        Section.BROKERS: by_name(broker(), propertyNames={"pattern": f"^([0-9]+|{reading.EVERY_BROKER})$"}),
        Section.CLIENT_METRICS: by_name(record({"configs": configs(CLIENT_METRICS_KEYS.values())})),
    }
    prune = {
        "type": "array",
        "items": {"enum": [str(each) for each in PRUNABLE]},
        "description": "Sections in which everything that is not mentioned is deleted; configs: keys of resources.",
    }
    whole = record({reading.PRUNE: prune, **{section.value: each for section, each in sections.items()}})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The declared state of a Kafka cluster",
        **whole,
        "$defs": {
            "value": {
                "type": ["string", "number", "boolean", "null", "array"],
                "items": {"type": ["string", "number", "boolean"]},
            },
            "secret": record(
                {key: {"type": "string"} for key in reading.SECRET_ORIGINS}, minProperties=1, maxProperties=1
            ),
        },
    }


def render() -> str:
    """Return the document's text."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
