"""`barnabas users`: who can log in by SCRAM."""

from enum import StrEnum
from typing import Annotated

import typer

from barnabas.base.arguments import conceal
from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="List, add and remove users that log in by SCRAM.", no_args_is_help=True)


class Mechanism(StrEnum):
    """What a password is for."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


Name = Annotated[
    str,
    typer.Argument(
        metavar="USER", help="The user's name.", show_default=False, autocompletion=candidates.users
    ),
]
Mechanisms = Annotated[
    list[Mechanism] | None,
    typer.Option("--mechanism", "-m", case_sensitive=False, help="Only for this one; else for all."),
]


@app.command("list")
@handle_errors
def list_users(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[USER]...",
            help="Only these; else all.",
            show_default=False,
            autocompletion=candidates.users,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List the users, by which mechanisms they log in, and with how many iterations."""
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
            help="The file that the password is in, - for stdin, or the password itself, which process listings show "
            "for a moment. Else it is asked for, or read from stdin.",
        ),
    ] = None,
    mechanism: Mechanisms = None,
    iterations: Annotated[
        int, typer.Option("--iterations", min=4096, max=16_384, help="Number of PBKDF2 iterations.")
    ] = 4096,
    as_json: Json = False,
) -> None:
    """Let a user log in with a password, a new one if it could already."""
    if password is not None:
        conceal([password])
    from barnabas.cli.work import users

    given = users.given_password(password)
    users.add(bootstrap, name, given, _titles(mechanism), iterations, as_json=as_json)


@app.command("remove")
@handle_errors
def remove_user(
    name: Name,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    mechanism: Mechanisms = None,
    as_json: Json = False,
) -> None:
    """Let a user log in no longer."""
    from barnabas.cli.work import users

    users.remove(bootstrap, name, _titles(mechanism), as_json=as_json)


def _titles(mechanisms: list[Mechanism] | None) -> list[str]:
    return [each.value for each in mechanisms or []]
