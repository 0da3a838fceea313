"""Implementation of `barnabas configs`."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas.base.arguments import conceal
from barnabas.cli.failures import wrong_use
from barnabas.cli.options import key_value_pairs
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.model import ConfigEntry
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.broker_config import find_broker_key
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.describe import ConfigSource
from barnabas.config.properties import parse_properties
from barnabas.wire.errors import KafkaError

#: Name in arguments of the resource with the default configs of all brokers.
DEFAULT_NAME = "default"
_KINDS = {
    "topic": ResourceKind.TOPIC,
    "broker": ResourceKind.BROKER,
    "logger": ResourceKind.BROKER_LOGGER,
    "group": ResourceKind.GROUP,
    "client-metrics": ResourceKind.CLIENT_METRICS,
}
_WORDS = {kind: word for word, kind in _KINDS.items()}
#: Sources of values that are not set for the resource itself.
_INHERITED = {
    ResourceKind.TOPIC: set(ConfigSource) - {ConfigSource.DYNAMIC_TOPIC_CONFIG},
    ResourceKind.GROUP: set(ConfigSource) - {ConfigSource.GROUP_CONFIG},
}
_MARKS = {"+": OpType.APPEND, "-": OpType.SUBTRACT}


def resource(kind: str, name: str) -> Resource:
    """Return the config resource for the arguments of a command.

    :raises CommandError: For a broker id that is not a number.
    """
    resource_kind = _KINDS[kind]
    if resource_kind is ResourceKind.BROKER and name == DEFAULT_NAME:
        return Resource(resource_kind, EVERY_BROKER)
    if resource_kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and not name.isdecimal():
        message = f"{kind} '{name}': the broker id must be a number"
        hint = (
            f"use '{DEFAULT_NAME}' for the default of all brokers"
            if resource_kind is ResourceKind.BROKER
            else ""
        )
        raise wrong_use(message, hint)
    return Resource(resource_kind, name)


def settings(values: Sequence[str], file: Path | None) -> list[AlterConfigOp]:
    """Parse `KEY=VALUE`, `KEY+=VALUE` and `KEY-=VALUE` arguments; operations of a .properties file come first.

    :raises CommandError: For an argument of another form, or if there is nothing to set.
    """
    properties = parse_properties(file.read_text(encoding="utf-8")) if file else {}
    edits = [AlterConfigOp(key, OpType.SET, value) for key, value in properties.items()]
    for text in values:
        key, equals, value = text.partition("=")
        if not key.rstrip("+-") or not equals:
            message = f"{text}: must have the form key=value, key+=value or key-=value"
            raise wrong_use(message)
        operation = _MARKS.get(key[-1], OpType.SET)
        edits.append(AlterConfigOp(key if operation is OpType.SET else key[:-1], operation, value))
    _conceal({edit.key: edit.value or "" for edit in edits})
    if not edits:
        raise wrong_use("nothing to set: specify key=value or --file")
    return edits


def _conceal(values: Mapping[str, str]) -> None:
    """Hide the values of sensitive keys from process listings."""
    keys = {name: find_broker_key(name) for name in values}
    conceal(values[name] for name, key in keys.items() if key is not None and key.sensitive)


def deletions(keys: Sequence[str]) -> list[AlterConfigOp]:
    """Return the operations that reset keys to their defaults."""
    return [AlterConfigOp(key, OpType.DELETE) for key in keys]


def show_list(bootstrap: str, kinds: Sequence[str], *, as_json: bool) -> None:
    """Print the resources of these kinds, or of all kinds."""
    resource_kinds = [_KINDS[kind] for kind in kinds]
    resources = sorted(with_admin(bootstrap, lambda admin: admin.list_config_resources(resource_kinds)))
    if as_json:
        print_json([_resource_json(item) for item in resources])
        return
    print_table(("kind", "name"), [(_WORDS[item.kind], item.name) for item in resources])


def show(
    bootstrap: str, kind: str, name: str, keys: Collection[str], *, everything: bool, as_json: bool
) -> None:
    """Print the configs of one resource."""
    config_resource = resource(kind, name)
    entries = with_admin(bootstrap, lambda admin: _entries(admin, config_resource, keys))
    if not (everything or keys):
        hidden = _INHERITED.get(config_resource.kind, {ConfigSource.DEFAULT_CONFIG})
        entries = [entry for entry in entries if entry.source not in hidden]
    if as_json:
        print_json({**_resource_json(config_resource), "configs": [_entry_json(entry) for entry in entries]})
        return
    rows = [(entry.name, _format_value(entry), entry.source.name.lower()) for entry in entries]
    print_table(("config", "value", "source"), rows)
    if not rows:
        notice("no configs are set; '--all' shows the defaults")


async def _entries(admin: Admin, resource: Resource, keys: Collection[str]) -> list[ConfigEntry]:
    entries = (await admin.describe_configs([resource], keys or None))[resource]
    if isinstance(entries, KafkaError):
        raise entries
    return sorted(entries)


def alter(
    bootstrap: str,
    kind: str,
    name: str,
    edits: Sequence[AlterConfigOp],
    *,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Change configs of one resource, and print the changed keys."""
    config_resource = resource(kind, name)
    results = with_admin(
        bootstrap, lambda admin: admin.alter_configs({config_resource: edits}, validate_only=validate_only)
    )
    raise_errors(results.values())
    keys = [edit.key for edit in edits]
    if as_json:
        print_json({**_resource_json(config_resource), "altered": keys, "validate_only": validate_only})
        return
    verb = "could be altered" if validate_only else "altered"
    print(f"{kind} {name}: {', '.join(keys)} {verb}")


def replacement(values: Sequence[str], file: Path | None) -> dict[str, str]:
    """Return the complete configs to set: those of a .properties file, and `KEY=VALUE` arguments.

    :raises CommandError: For an argument of another form.
    """
    properties = parse_properties(file.read_text(encoding="utf-8")) if file else {}
    configs = {**properties, **dict(key_value_pairs(list(values), "KEY=VALUE"))}
    _conceal(configs)
    return configs


def replace(
    bootstrap: str, kind: str, name: str, values: Mapping[str, str], *, validate_only: bool, as_json: bool
) -> None:
    """Replace all configs of one resource, and print the keys."""
    config_resource = resource(kind, name)
    with_admin(
        bootstrap, lambda admin: admin.replace_configs(config_resource, values, validate_only=validate_only)
    )
    if as_json:
        print_json(
            {**_resource_json(config_resource), "altered": list(values), "validate_only": validate_only}
        )
        return
    verb = "could be replaced" if validate_only else "replaced"
    print(f"{kind} {name}: configs {verb} by {', '.join(values) or 'defaults'}")


def _resource_json(resource: Resource) -> dict[str, Any]:
    name = DEFAULT_NAME if resource == Resource(ResourceKind.BROKER, EVERY_BROKER) else resource.name
    return {"kind": _WORDS[resource.kind], "name": name}


def _entry_json(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "config": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
        "synonyms": [
            {"config": synonym.name, "value": synonym.value, "source": synonym.source.name}
            for synonym in entry.synonyms
        ],
    }


def _format_value(entry: ConfigEntry) -> str:
    if entry.sensitive:
        return "(hidden)"
    return "(none)" if entry.value is None else entry.value
