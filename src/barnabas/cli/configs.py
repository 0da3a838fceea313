"""`barnabas configs`: list, get, set, delete and replace configs of topics, brokers, groups and others."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="List, get, set, delete and replace configs of topics, brokers, loggers, groups and client metrics.",
    no_args_is_help=True,
)


class ConfigResourceKind(StrEnum):
    """Kind of a config resource, as in arguments."""

    TOPIC = "topic"
    BROKER = "broker"
    LOGGER = "logger"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"


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
Dry = Annotated[bool, typer.Option("--validate-only", help="Validate the request without applying it.")]


@app.command("list")
@handle_errors
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
    from barnabas.cli.work import configs

    configs.show_list(bootstrap, [each.value for each in kinds or ()], as_json=as_json)


@app.command("get")
@handle_errors
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
    from barnabas.cli.work import configs

    configs.show(bootstrap, kind.value, name, keys or [], everything=everything, as_json=as_json)


@app.command("set")
@handle_errors
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
    file: Annotated[
        Path | None, typer.Option("--file", help="A .properties file with further values, such as secrets.")
    ] = None,
    validate_only: Dry = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set values; other configs are not changed."""
    from barnabas.cli.work import configs

    edits = configs.settings(values or [], file)
    configs.alter(bootstrap, kind.value, name, edits, validate_only=validate_only, as_json=as_json)


@app.command("delete")
@handle_errors
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
    validate_only: Dry = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Reset configs to their defaults."""
    from barnabas.cli.work import configs

    edits = configs.deletions(keys)
    configs.alter(bootstrap, kind.value, name, edits, validate_only=validate_only, as_json=as_json)


@app.command("replace")
@handle_errors
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
    file: Annotated[
        Path | None, typer.Option("--file", help="A .properties file with further values, such as secrets.")
    ] = None,
    validate_only: Dry = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set these values and RESET ALL OTHERS to their defaults; use 'set' to keep the others."""
    from barnabas.cli.work import configs

    replacement = configs.replacement(values or [], file)
    configs.replace(bootstrap, kind.value, name, replacement, validate_only=validate_only, as_json=as_json)
