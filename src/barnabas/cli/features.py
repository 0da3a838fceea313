"""`barnabas features`: list features, set their levels."""

from enum import StrEnum
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors, wrong_use
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs

app = typer.Typer(help="List the features of the cluster and set their levels.", no_args_is_help=True)


class Downgrade(StrEnum):
    """Which downgrades are allowed."""

    SAFE = "safe"
    UNSAFE = "unsafe"


@app.command("list")
@handle_errors
def list_features(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """List the features: the level in use, and the levels that the broker supports."""
    from barnabas.cli.work import features

    features.show_list(bootstrap, as_json=as_json)


@app.command("set")
@handle_errors
def set_features(
    levels: Annotated[
        list[str],
        typer.Argument(
            metavar="FEATURE=LEVEL...",
            help="New level of a feature; 0 disables it.",
            show_default=False,
            autocompletion=candidates.features,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    downgrade: Annotated[
        Downgrade | None,
        typer.Option("--downgrade", help="Allow downgrades; 'unsafe' also allows those that lose metadata."),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Validate the request without applying it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the levels of features, all of them or none."""
    pairs = dict(key_value_pairs(levels, "FEATURE=LEVEL"))
    for name, level in pairs.items():
        if not level.isdecimal():
            raise wrong_use(f"{name}={level}: the level must be a number")
    from barnabas.cli.work import features

    features.update(
        bootstrap,
        {name: int(level) for name, level in pairs.items()},
        downgrade=None if downgrade is None else downgrade.value,
        validate_only=validate_only,
        as_json=as_json,
    )
