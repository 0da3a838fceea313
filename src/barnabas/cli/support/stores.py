"""Options of commands that use object stores."""

from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.base.arguments import conceal

if TYPE_CHECKING:
    from barnabas.objects.settings import StoreSettings

StoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--store-option",
        metavar="KEY=VALUE",
        help="Object store setting, such as AWS_REGION=eu-central-1. Overrides the environment; may be repeated.",
    ),
]


def store_settings(pairs: list[str] | None) -> "StoreSettings":
    """Return the settings for object stores, and overwrite secret ones in this process's arguments.

    :raises LocationError: If one of them does not have the form KEY=VALUE.
    """
    from barnabas.objects.settings import is_secret, parse_settings

    settings = parse_settings(pairs or ())
    conceal(value for name, value in settings.values.items() if is_secret(name))
    return settings
