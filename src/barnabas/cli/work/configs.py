"""What `barnabas configs` does."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas.base.arguments import conceal
from barnabas.cli.failures import wrong_use
from barnabas.cli.options import key_value_pairs
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.model import ConfigEntry, ConfigSource
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.broker_config import find_broker_key
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.properties import parse_properties
from barnabas.wire.errors import KafkaError

#: How people type the resource that stands for every broker.
DEFAULT_NAME = "default"
_KINDS = {
    "topic": ResourceKind.TOPIC,
    "broker": ResourceKind.BROKER,
    "logger": ResourceKind.BROKER_LOGGER,
    "group": ResourceKind.GROUP,
    "client-metrics": ResourceKind.CLIENT_METRICS,
}
_WORDS = {kind: word for word, kind in _KINDS.items()}
#: Sources of values that nobody has set for the resource itself.
_INHERITED = {
    ResourceKind.TOPIC: set(ConfigSource) - {ConfigSource.DYNAMIC_TOPIC_CONFIG},
    ResourceKind.GROUP: set(ConfigSource) - {ConfigSource.GROUP_CONFIG},
}
_MARKS = {"+": OpType.APPEND, "-": OpType.SUBTRACT}


def resource(kind: str, name: str) -> Resource:
    """The resource that somebody has typed.

    :raises Failure: For a broker that is no number.
    """
    found = _KINDS[kind]
    if found is ResourceKind.BROKER and name == DEFAULT_NAME:
        return Resource(found, EVERY_BROKER)
    if found in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and not name.isdecimal():
        message = f"{kind} '{name}': the id of a broker is a number"
        hint = f"'{DEFAULT_NAME}' stands for every broker" if found is ResourceKind.BROKER else ""
        raise wrong_use(message, hint)
    return Resource(found, name)


def settings(values: Sequence[str], file: Path | None) -> list[AlterConfigOp]:
    """The edits of `KEY=VALUE`, `KEY+=VALUE` and `KEY-=VALUE` arguments, after those of a .properties file.

    :raises Failure: For an argument of another form, or none at all.
    """
    properties = parse_properties(file.read_text(encoding="utf-8")) if file else {}
    edits = [AlterConfigOp(key, OpType.SET, value) for key, value in properties.items()]
    for text in values:
        key, equals, value = text.partition("=")
        if not key.rstrip("+-") or not equals:
            message = f"{text}: key=value, key+=value or key-=value is expected"
            raise wrong_use(message)
        operation = _MARKS.get(key[-1], OpType.SET)
        edits.append(AlterConfigOp(key if operation is OpType.SET else key[:-1], operation, value))
    _conceal({edit.key: edit.value or "" for edit in edits})
    if not edits:
        raise wrong_use("nothing to set: key=value or --file is expected")
    return edits


def _conceal(values: Mapping[str, str]) -> None:
    """Keep values of keys that brokers hide out of process listings."""
    keys = {name: find_broker_key(name) for name in values}
    conceal(values[name] for name, key in keys.items() if key is not None and key.sensitive)


def deletions(keys: Sequence[str]) -> list[AlterConfigOp]:
    """The edits that take keys away."""
    return [AlterConfigOp(key, OpType.DELETE) for key in keys]


def show_list(bootstrap: str, kinds: Sequence[str], *, as_json: bool) -> None:
    """Print the resources of those kinds, or of all."""
    wanted = [_KINDS[kind] for kind in kinds]
    found = sorted(with_admin(bootstrap, lambda admin: admin.list_config_resources(wanted)))
    if as_json:
        print_json([_named(each) for each in found])
        return
    print_table(("kind", "name"), [(_WORDS[each.kind], each.name) for each in found])


def show(
    bootstrap: str, kind: str, name: str, keys: Collection[str], *, everything: bool, as_json: bool
) -> None:
    """Print the configs of one resource."""
    asked = resource(kind, name)
    entries = with_admin(bootstrap, lambda admin: _entries(admin, asked, keys))
    if not (everything or keys):
        hidden = _INHERITED.get(asked.kind, {ConfigSource.DEFAULT_CONFIG})
        entries = [entry for entry in entries if entry.source not in hidden]
    if as_json:
        print_json({**_named(asked), "configs": [_entry_json(entry) for entry in entries]})
        return
    rows = [(entry.name, _shown(entry), entry.source.name.lower()) for entry in entries]
    print_table(("config", "value", "source"), rows)
    if not rows:
        notice("nothing is set; '--all' shows the defaults")


async def _entries(admin: Admin, asked: Resource, keys: Collection[str]) -> list[ConfigEntry]:
    outcome = (await admin.describe_configs([asked], keys or None))[asked]
    if isinstance(outcome, KafkaError):
        raise outcome
    return sorted(outcome)


def alter(
    bootstrap: str,
    kind: str,
    name: str,
    edits: Sequence[AlterConfigOp],
    *,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Edit the configs of one resource and say what became of it."""
    asked = resource(kind, name)
    outcomes = with_admin(
        bootstrap, lambda admin: admin.alter_configs({asked: edits}, validate_only=validate_only)
    )
    raise_errors(outcomes.values())
    keys = [edit.key for edit in edits]
    if as_json:
        print_json({**_named(asked), "altered": keys, "validate_only": validate_only})
        return
    verb = "could be altered" if validate_only else "altered"
    print(f"{kind} {name}: {', '.join(keys)} {verb}")


def replacement(values: Sequence[str], file: Path | None) -> dict[str, str]:
    """All that is to be set: what a .properties file says, and `KEY=VALUE` arguments.

    :raises Failure: For an argument of another form.
    """
    properties = parse_properties(file.read_text(encoding="utf-8")) if file else {}
    wanted = {**properties, **dict(key_value_pairs(list(values), "KEY=VALUE"))}
    _conceal(wanted)
    return wanted


def replace(
    bootstrap: str, kind: str, name: str, values: Mapping[str, str], *, validate_only: bool, as_json: bool
) -> None:
    """Give one resource these configs alone, and say so."""
    asked = resource(kind, name)
    with_admin(bootstrap, lambda admin: admin.replace_configs(asked, values, validate_only=validate_only))
    if as_json:
        print_json({**_named(asked), "altered": list(values), "validate_only": validate_only})
        return
    verb = "could be replaced" if validate_only else "replaced"
    print(f"{kind} {name}: all that is set {verb} by {', '.join(values) or 'nothing'}")


def _named(each: Resource) -> dict[str, Any]:
    name = DEFAULT_NAME if each == Resource(ResourceKind.BROKER, EVERY_BROKER) else each.name
    return {"kind": _WORDS[each.kind], "name": name}


def _entry_json(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "config": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
        "synonyms": [
            {"config": each.name, "value": each.value, "source": each.source.name} for each in entry.synonyms
        ],
    }


def _shown(entry: ConfigEntry) -> str:
    if entry.sensitive:
        return "(hidden)"
    return "(none)" if entry.value is None else entry.value
