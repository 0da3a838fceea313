"""`barnabas users`: list, add and remove SCRAM users."""

from enum import StrEnum
from typing import Annotated

import typer

from barnabas.base.arguments import conceal
from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="List, add and remove users with SCRAM credentials.", no_args_is_help=True)


class Mechanism(StrEnum):
    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


Name = Annotated[
    str,
    typer.Argument(
        metavar="USER", help="Name of the user.", show_default=False, autocompletion=candidates.users
    ),
]
Mechanisms = Annotated[
    list[Mechanism] | None,
    typer.Option(
        "--mechanism",
        "-m",
        case_sensitive=False,
        help="SCRAM mechanism (default: all mechanisms); may be repeated.",
    ),
]


@app.command("list")
@handle_errors
def list_users(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[USER]...",
            help="Users to list (default: all).",
            show_default=False,
            autocompletion=candidates.users,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List users, the SCRAM mechanisms of their credentials, and the numbers of iterations."""
    from barnabas.cli.work import users

    users.show_list(bootstrap, names, as_json=as_json)


@app.command("add")
@handle_errors
def add_user(
    name: Name,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    password: Annotated[
        str | None,
        typer.Option(
            "--password",
            metavar="@FILE|-|TEXT",
            envvar="BARNABAS_PASSWORD",
            help="Password: @FILE reads it from a file, - from stdin; TEXT is the password itself, which process "
            "listings show for a moment (default: prompt on a terminal, else read from stdin).",
        ),
    ] = None,
    mechanism: Mechanisms = None,
    iterations: Annotated[
        int, typer.Option("--iterations", min=4096, max=16_384, help="Number of PBKDF2 iterations.")
    ] = 4096,
    as_json: Json = False,
) -> None:
    """Set the password of a user; creates the user if it does not exist."""
    if password is not None:
        conceal([password])
    from barnabas.cli.work import users

    users.add(bootstrap, name, users.read_password(password), _titles(mechanism), iterations, as_json=as_json)


@app.command("remove")
@handle_errors
def remove_user(
    name: Name,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    mechanism: Mechanisms = None,
    as_json: Json = False,
) -> None:
    """Remove the SCRAM credentials of a user."""
    from barnabas.cli.work import users

    users.remove(bootstrap, name, _titles(mechanism), as_json=as_json)


def _titles(mechanisms: list[Mechanism] | None) -> list[str]:
    return [item.value for item in mechanisms or []]
