"""Options that many commands share."""

from typing import Annotated

import typer

from barnabas.cli.failures import wrong_use

BOOTSTRAP_DEFAULT = "127.0.0.1:9092"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar="BARNABAS_BOOTSTRAP",
        help="A broker of the cluster, or several with commas.",
    ),
]
Wait = Annotated[
    float | None,
    typer.Option("--wait", metavar="SECONDS", min=0, help="Stay until it is done, at most so long."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def key_value_pairs(pairs: list[str] | None, option: str) -> list[tuple[str, str]]:
    """The parts of `key=value` arguments.

    :raises Failure: For one without a key or an equals sign.
    """
    parted = [pair.partition("=") for pair in pairs or []]
    for key, equals, value in parted:
        if not key or not equals:
            message = f"{option} {key}{equals}{value}: key=value is expected"
            raise wrong_use(message)
    return [(key, value) for key, _, value in parted]
