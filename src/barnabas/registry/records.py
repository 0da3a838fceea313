"""Records of the topic of schemas, in the format of Confluent's registry: keys and values are JSON.

The topic is compacted by key, so the bytes of a key must be those that Confluent's registry writes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from barnabas.registry.levels import COMPATIBILITY_DEFAULT, CompatibilityLevel, RegistryMode
from barnabas.registry.schemas import SchemaReference, SchemaText, SchemaType

#: A subject of another context, which this registry does not serve.
_CONTEXT = ":."
_MAGIC, _SCHEMA_MAGIC = 0, 1


@dataclass(frozen=True)
class RegisteredVersion:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: SchemaText
    deleted: bool = False
    #: Fields that other registries wrote.
    further: Mapping[str, Any] = field(default_factory=dict, compare=False)


class RemovedVersion(NamedTuple):
    """A version that is permanently deleted."""

    subject: str
    version: int


class CompatibilitySetting(NamedTuple):
    """The compatibility level of a subject, or with an empty name of all others; None if it is removed."""

    subject: str
    level: CompatibilityLevel | None
    normalizes: bool | None = None  #: whether schemas are normalized without being asked for it
    further: Mapping[str, Any] = {}  #: fields that other registries wrote


class ModeSetting(NamedTuple):
    """The mode of a subject, or with an empty name of all others; None if it is removed."""

    subject: str
    mode: RegistryMode | None


class DeletedSubject(NamedTuple):
    """All versions of a subject up to this one are deleted."""

    subject: str
    version: int


class ClearedSubject(NamedTuple):
    """All that is known of a subject is removed."""

    subject: str


RegistryRecord: TypeAlias = (
    RegisteredVersion | RemovedVersion | CompatibilitySetting | ModeSetting | DeletedSubject | ClearedSubject
)


def encode_record(record: RegistryRecord) -> tuple[bytes, bytes | None]:
    """Return key and value."""
    match record:
        case RegisteredVersion(subject, version):
            return _schema_key(subject, version), _json(_version_value(record))
        case RemovedVersion(subject, version):
            return _schema_key(subject, version), None
        case CompatibilitySetting(subject, level):
            value = None if level is None and record.normalizes is None else _json(_setting_value(record))
            return _json({"keytype": "CONFIG", "subject": subject or None, "magic": _MAGIC}), value
        case ModeSetting(subject, mode):
            key = {"keytype": "MODE", "subject": subject or None, "magic": _MAGIC}
            return _json(key), None if mode is None else _json({"mode": mode.value})
        case DeletedSubject(subject, version):
            key = {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": _MAGIC}
            return _json(key), _json({"subject": subject, "version": version})
        case ClearedSubject(subject):
            key = {"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": _MAGIC}
            return _json(key), _json({"subject": subject})


def _schema_key(subject: str, version: int) -> bytes:
    return _json({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": _SCHEMA_MAGIC})


def _version_value(version: RegisteredVersion) -> dict[str, Any]:
    value: dict[str, Any] = {"subject": version.subject, "version": version.version, "id": version.id}
    value |= version.further
    value |= schema_fields(version.schema)
    return {**value, "schema": version.schema.text, "deleted": version.deleted}


def schema_fields(schema: SchemaText) -> dict[str, Any]:
    """Return the fields beside the text that a schema has: the type only if it is not Avro."""
    fields: dict[str, Any] = {}
    if schema.type is not SchemaType.AVRO:
        fields["schemaType"] = schema.type.value
    if schema.references:
        fields["references"] = [reference._asdict() for reference in schema.references]
    if schema.metadata:
        fields["metadata"] = json.loads(schema.metadata)
    if schema.rule_set:
        fields["ruleSet"] = json.loads(schema.rule_set)
    return fields


def _setting_value(setting: CompatibilitySetting) -> dict[str, Any]:
    value = {} if setting.level is None else {"compatibilityLevel": setting.level.value}
    if setting.normalizes is not None:
        value["normalize"] = setting.normalizes  # type: ignore[assignment]
    return {**setting.further, **value}


def decode_record(key: bytes | None, value: bytes | None) -> RegistryRecord | None:
    """Return a record; None for one without a meaning here, such as NOOP and those of other contexts.

    :raises ValueError: If it is malformed.
    """
    try:
        parts = json.loads(key or b"null")
        fields = None if value is None else json.loads(value)
        subject = parts.get("subject") or ""
        return None if subject.startswith(_CONTEXT) else _decode(parts, fields, subject)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        message = f"a field is missing or has another type: {error}"
        raise ValueError(message) from None
    except RecursionError:
        message = "it is nested too deeply"
        raise ValueError(message) from None


def _decode(key: dict[str, Any], fields: Any, subject: str) -> RegistryRecord | None:
    match key["keytype"]:
        case "SCHEMA" if fields is None:
            return RemovedVersion(subject, int(key["version"]))
        case "SCHEMA":
            return _version(subject, int(key["version"]), fields)
        case "CONFIG":
            return _setting(subject, fields or {})
        case "MODE":
            return ModeSetting(subject, None if fields is None else _mode(fields["mode"]))
        case "DELETE_SUBJECT" if fields is not None:
            return DeletedSubject(subject, int(fields["version"]))
        case "CLEAR_SUBJECT" if fields is not None:
            return ClearedSubject(subject)
        case _:
            return None


_VERSION_FIELDS = frozenset(
    ("subject", "version", "id", "schemaType", "references", "metadata", "ruleSet", "schema", "deleted")
)


def _version(subject: str, version: int, fields: dict[str, Any]) -> RegisteredVersion:
    further = {name: value for name, value in fields.items() if name not in _VERSION_FIELDS}
    return RegisteredVersion(
        subject, version, int(fields["id"]), schema_of(fields), bool(fields.get("deleted")), further
    )


def schema_of(fields: Mapping[str, Any]) -> SchemaText:
    """Return the schema in a record's value, or in a request.

    :raises ValueError: If the type is unknown, or the schema is not a text.
    :raises KeyError: If there is no text.
    """
    text = fields["schema"]
    if not isinstance(text, str):
        message = "the schema is not a text"
        raise ValueError(message)
    references = tuple(
        SchemaReference(str(each["name"]), str(each["subject"]), int(each["version"]))
        for each in fields.get("references") or ()
    )
    return SchemaText(
        SchemaType(fields.get("schemaType") or SchemaType.AVRO),
        text,
        references,
        _kept(fields.get("metadata")),
        _kept(fields.get("ruleSet")),
    )


def _kept(part: Any) -> str:
    if part is None:
        return ""
    return json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _setting(subject: str, fields: dict[str, Any]) -> CompatibilitySetting:
    level = fields.get("compatibilityLevel")
    known = CompatibilityLevel.__members__.get(str(level))
    further = {
        name: value for name, value in fields.items() if name not in ("compatibilityLevel", "normalize")
    }
    return CompatibilitySetting(subject, known, fields.get("normalize"), further)


def _mode(name: str) -> RegistryMode:
    """A mode that is unknown, such as FORWARD, permits no writes."""
    return RegistryMode(name) if name in RegistryMode.__members__ else RegistryMode.READONLY


def _json(part: dict[str, Any]) -> bytes:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()


#: What applies without a setting.
GLOBAL_DEFAULT = CompatibilitySetting("", COMPATIBILITY_DEFAULT)
