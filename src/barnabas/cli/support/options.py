"""Options that many commands share."""

from typing import Annotated

import typer

from barnabas.cli.support.failures import wrong_use

BOOTSTRAP_DEFAULT = "127.0.0.1:9092"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar="BARNABAS_BOOTSTRAP",
        help="Brokers to connect to first, separated by commas.",
    ),
]
Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        help="Wait until it is done, at most this many seconds (default: do not wait).",
    ),
]
ValidateOnly = Annotated[
    bool, typer.Option("--validate-only", help="Validate the request without applying it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def key_value_pairs(pairs: list[str] | None, option: str) -> list[tuple[str, str]]:
    """Parse `key=value` arguments.

    :raises CommandError: For an argument without a key or an equals sign.
    """
    parsed = [pair.partition("=") for pair in pairs or []]
    for key, equals, value in parsed:
        if not key or not equals:
            message = f"{option} {key}{equals}{value}: must have the form key=value"
            raise wrong_use(message)
    return [(key, value) for key, _, value in parsed]
