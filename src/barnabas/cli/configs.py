"""`barnabas configs`: list, get, set, delete and replace configs of topics, brokers, groups and others."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from barnabas.base.arguments import conceal
from barnabas.base.resource_names import HIDDEN
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.config_resources import (
    DEFAULT_NAME,
    KIND_ARGUMENTS,
    RESOURCE_KINDS,
    ConfigResourceKind,
    parse_resource,
)
from barnabas.cli.support.failures import NOT_FOUND, CommandError, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, ValidateOnly, key_value_pairs
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.model import ConfigEntry
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.broker_config import find_broker_key
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.config.properties import parse_properties
from barnabas.wire.errors import KafkaError

#: Sources of values that are not set for the resource itself.
_INHERITED = {
    ResourceKind.TOPIC: set(ConfigSource) - {ConfigSource.DYNAMIC_TOPIC_CONFIG},
    ResourceKind.GROUP: set(ConfigSource) - {ConfigSource.GROUP_CONFIG},
}
_MARKS = {"+": OpType.APPEND, "-": OpType.SUBTRACT}

KindArgument = Annotated[
    ConfigResourceKind,
    typer.Argument(metavar="KIND", help=f"Kind of resource: {', '.join(ConfigResourceKind)}."),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of the resource; for brokers and loggers the broker id, or 'default' for all brokers.",
        autocompletion=candidates.config_names,
    ),
]
SettingsFile = Annotated[
    Path | None, typer.Option("--file", help="A .properties file with further values, such as secrets.")
]


@command(
    "list",
    example="configs list topic group",
    apis=("ListConfigResources",),
    needs=("describe-configs cluster",),
)
def list_resources(
    kinds: Annotated[
        list[ConfigResourceKind] | None,
        typer.Argument(
            metavar="[KIND]...", help=f"Kinds of resources: {', '.join(ConfigResourceKind)} (default: all)."
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List the resources that have configs; groups and client metrics appear once a config is set."""
    resource_kinds = [RESOURCE_KINDS[kind] for kind in kinds or ()]
    resources = sorted(with_admin(bootstrap, lambda admin: admin.list_config_resources(resource_kinds)))
    if as_json:
        print_json([_resource_json(resource) for resource in resources])
        return
    print_table(("kind", "name"), [(KIND_ARGUMENTS[resource.kind], resource.name) for resource in resources])


@command(
    "get",
    example="configs get topic orders --all",
    apis=("DescribeConfigs",),
    needs=("describe-configs topic",),
)
def get_configs(
    kind: KindArgument,
    name: Name,
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY]...",
            help="Keys to show (default: keys that are set).",
            autocompletion=candidates.config_keys,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show keys that have their default value.", show_default=False)
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show values and their sources."""
    resource = parse_resource(kind, name)
    entries = with_admin(bootstrap, lambda admin: _fetch(admin, resource, keys or ()))
    if not (everything or keys):
        hidden = _INHERITED.get(resource.kind, {ConfigSource.DEFAULT_CONFIG})
        entries = [entry for entry in entries if entry.source not in hidden]
    rows = [(entry.name, _format_value(entry), entry.source.name.lower()) for entry in entries]
    if as_json:
        print_json({**_resource_json(resource), "configs": [_entry_json(entry) for entry in entries]})
    elif rows or not keys:
        print_table(("config", "value", "source"), rows)
    if not (rows or keys):
        notice("no configs are set; '--all' shows the defaults")
    raise_all(_unknown(resource, keys or (), entries))


def _unknown(
    resource: Resource, keys: Iterable[str], entries: Iterable[ConfigEntry]
) -> Iterator[CommandError]:
    """Yield an error for each key that the resource does not have; all brokers together have those that are set."""
    if resource == Resource(ResourceKind.BROKER, EVERY_BROKER):
        return
    known = {entry.name for entry in entries}
    where = f"{KIND_ARGUMENTS[resource.kind]} {resource.name}"
    for key in keys:
        if key not in known:
            hint = f"'barnabas configs get {where} --all' shows its configs"
            yield CommandError(f"{where} has no config '{key}'", hint=hint, exit_code=NOT_FOUND)


async def _fetch(admin: Admin, resource: Resource, keys: Collection[str]) -> list[ConfigEntry]:
    entries = (await admin.describe_configs([resource], keys or None))[resource]
    if isinstance(entries, KafkaError):
        raise entries
    return sorted(entries)


@command(
    "set",
    example="configs set topic orders retention.ms=86400000 cleanup.policy+=compact",
    apis=("IncrementalAlterConfigs",),
    needs=("alter-configs topic",),
)
def set_configs(
    kind: KindArgument,
    name: Name,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Values to set; KEY+=VALUE appends to a list, KEY-=VALUE removes from it.",
            autocompletion=candidates.config_settings,
        ),
    ] = None,
    file: SettingsFile = None,
    validate_only: ValidateOnly = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set values; other configs are not changed."""
    edits = parse_edits(values or (), file)
    _alter(bootstrap, kind, name, edits, validate_only=validate_only, as_json=as_json)


def parse_edits(values: Sequence[str], file: Path | None) -> list[AlterConfigOp]:
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


@command(
    "delete",
    example="configs delete topic orders retention.ms",
    apis=("IncrementalAlterConfigs",),
    needs=("alter-configs topic",),
)
def delete_configs(
    kind: KindArgument,
    name: Name,
    keys: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY...",
            help="Keys to reset to their defaults.",
            show_default=False,
            autocompletion=candidates.config_keys,
        ),
    ],
    validate_only: ValidateOnly = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Reset configs to their defaults."""
    edits = [AlterConfigOp(key, OpType.DELETE) for key in keys]
    _alter(bootstrap, kind, name, edits, validate_only=validate_only, as_json=as_json)


def _alter(
    bootstrap: str,
    kind: ConfigResourceKind,
    name: str,
    edits: Sequence[AlterConfigOp],
    *,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Change configs of one resource, and print the changed keys."""
    resource = parse_resource(kind, name)
    results = with_admin(
        bootstrap, lambda admin: admin.alter_configs({resource: edits}, validate_only=validate_only)
    )
    raise_errors(results.values())
    keys = [edit.key for edit in edits]
    if as_json:
        print_json({**_resource_json(resource), "altered": keys, "validate_only": validate_only})
        return
    verb = "could be altered" if validate_only else "altered"
    print(f"{kind} {name}: {', '.join(keys)} {verb}")


@command(
    "replace",
    example="configs replace topic orders --file orders.properties",
    apis=("AlterConfigs",),
    needs=("alter-configs topic",),
)
def replace_configs(
    kind: KindArgument,
    name: Name,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Complete new set of configs; every config not listed is reset to its default.",
            autocompletion=candidates.config_settings,
        ),
    ] = None,
    file: SettingsFile = None,
    validate_only: ValidateOnly = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set these values and RESET ALL OTHERS to their defaults; use 'set' to keep the others."""
    properties = parse_properties(file.read_text(encoding="utf-8")) if file else {}
    configs = {**properties, **dict(key_value_pairs(values, "KEY=VALUE"))}
    _conceal(configs)
    resource = parse_resource(kind, name)
    with_admin(bootstrap, lambda admin: admin.replace_configs(resource, configs, validate_only=validate_only))
    if as_json:
        print_json({**_resource_json(resource), "altered": list(configs), "validate_only": validate_only})
        return
    verb = "could be replaced" if validate_only else "replaced"
    print(f"{kind} {name}: configs {verb} by {', '.join(configs) or 'defaults'}")


def _resource_json(resource: Resource) -> dict[str, Any]:
    name = DEFAULT_NAME if resource == Resource(ResourceKind.BROKER, EVERY_BROKER) else resource.name
    return {"kind": KIND_ARGUMENTS[resource.kind], "name": name}


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
        return HIDDEN
    return "(none)" if entry.value is None else entry.value


app = command_group(list_resources, get_configs, set_configs, delete_configs, replace_configs)
