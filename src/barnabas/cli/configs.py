"""`barnabas configs`: list, get, set, delete, replace; of topics, brokers, loggers, groups and client metrics."""

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
    """What bears configs, as people type it."""

    TOPIC = "topic"
    BROKER = "broker"
    LOGGER = "logger"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"


KindArgument = Annotated[
    ConfigResourceKind, typer.Argument(metavar="KIND", help=f"One of {', '.join(ConfigResourceKind)}.")
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A name; for brokers and loggers the broker's id, or 'default' for what holds on every broker.",
        autocompletion=candidates.config_names,
    ),
]
Dry = Annotated[bool, typer.Option("--validate-only", help="Validate the request without applying it.")]


@app.command("list")
@handle_errors
def list_resources(
    kinds: Annotated[
        list[ConfigResourceKind] | None,
        typer.Argument(metavar="[KIND]...", help=f"Some of {', '.join(ConfigResourceKind)}; else all."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List what has configs; groups and client metrics have some only once they are set."""
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
            metavar="[KEY]...", help="Some keys; else what was set.", autocompletion=candidates.config_keys
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show what stands at its default, too.", show_default=False)
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show values and where they come from."""
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
            help="KEY+=VALUE adds to a list, KEY-=VALUE takes from it.",
            autocompletion=candidates.config_settings,
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="A .properties file with more of them, such as secrets.")
    ] = None,
    validate_only: Dry = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set values; what is not named stays as it is."""
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
            help="Keys that go back to their defaults.",
            show_default=False,
            autocompletion=candidates.config_keys,
        ),
    ],
    validate_only: Dry = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Take values away that were set."""
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
        Path | None, typer.Option("--file", help="A .properties file with more of them, such as secrets.")
    ] = None,
    validate_only: Dry = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set these values and TAKE AWAY ALL OTHERS; 'set' leaves others as they are."""
    from barnabas.cli.work import configs

    wanted = configs.replacement(values or [], file)
    configs.replace(bootstrap, kind.value, name, wanted, validate_only=validate_only, as_json=as_json)
