"""`barnabas users`: list, add and remove SCRAM users."""

import getpass
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barnabas.base.arguments import conceal
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.scram import Upsertion, UserScramCredentialDeletion
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import MECHANISMS_BY_TITLE, ScramMechanism


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


@command(
    "list", example="users list alice", apis=("DescribeUserScramCredentials",), needs=("describe cluster",)
)
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
    results = with_admin(bootstrap, lambda admin: admin.describe_user_scram_credentials(names))
    users = {name: result for name, result in sorted(results.items()) if not isinstance(result, KafkaError)}
    if as_json:
        print_json(
            [{"user": name, "mechanisms": _by_title(credentials)} for name, credentials in users.items()]
        )
        raise_all(results.values())
        return
    rows = [
        (name, title, iterations)
        for name, credentials in users.items()
        for title, iterations in _by_title(credentials).items()
    ]
    print_table(("user", "mechanism", "iterations"), rows)
    raise_all(results.values())
    if not users:
        notice("no users; 'barnabas users add NAME' creates one")


def _by_title(iterations: dict[ScramMechanism, int]) -> dict[str, int]:
    return {mechanism.title: count for mechanism, count in iterations.items()}


@command(
    "add",
    example="users add alice --password @password-file",
    apis=("AlterUserScramCredentials",),
    needs=("alter cluster",),
)
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
    secret = _read_password(password)
    upsertions = [
        Upsertion(name, scram_mechanism, secret, iterations)
        for scram_mechanism in _scram_mechanisms(mechanism) or MECHANISMS_BY_TITLE.values()
    ]
    with_admin(bootstrap, lambda admin: _alter(admin, upsertions))
    _print_done("added", upsertions, as_json=as_json)


def _read_password(option: str | None) -> str:
    """Return the password: the option itself, or read from a file (@FILE), the terminal, or stdin (-).

    :raises CommandError: If the password is empty.
    """
    if option == "-":
        password = sys.stdin.readline().rstrip("\r\n")
    elif option is not None and option.startswith("@"):
        password = Path(option[1:]).read_text(encoding="utf-8").rstrip("\r\n")
    elif option is not None:
        password = option
    elif sys.stdin.isatty():
        password = getpass.getpass("Password: ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise wrong_use("a password is required", "pass it on stdin, or with --password @FILE")
    return password


@command(
    "remove",
    example="users remove alice",
    apis=("DescribeUserScramCredentials", "AlterUserScramCredentials"),
    needs=("describe cluster", "alter cluster"),
)
def remove_user(
    name: Name,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    mechanism: Mechanisms = None,
    as_json: Json = False,
) -> None:
    """Remove the SCRAM credentials of a user."""
    mechanisms = _scram_mechanisms(mechanism)
    deletions = with_admin(bootstrap, lambda admin: _remove(admin, name, mechanisms))
    _print_done("removed", deletions, as_json=as_json)


def _scram_mechanisms(mechanisms: Sequence[Mechanism] | None) -> list[ScramMechanism]:
    return [MECHANISMS_BY_TITLE[mechanism] for mechanism in mechanisms or ()]


async def _remove(
    admin: Admin, name: str, mechanisms: Sequence[ScramMechanism]
) -> list[UserScramCredentialDeletion]:
    described = await admin.describe_user_scram_credentials([name])
    raise_errors(described.values())
    credentials = described[name]
    assert not isinstance(credentials, KafkaError)
    deletions = [UserScramCredentialDeletion(name, mechanism) for mechanism in mechanisms or credentials]
    await _alter(admin, deletions)
    return deletions


async def _alter(admin: Admin, alterations: Sequence[Upsertion | UserScramCredentialDeletion]) -> None:
    """Send one request per alteration, because a request may name a user only once."""
    for alteration in alterations:
        results = await admin.alter_user_scram_credentials([alteration])
        raise_errors(results.values())
        if alteration.user not in results:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"the response has no result for user '{alteration.user}'"
            )


def _print_done(
    verb: str, alterations: Sequence[Upsertion | UserScramCredentialDeletion], *, as_json: bool
) -> None:
    if as_json:
        print_json(
            [
                {"user": alteration.user, "mechanism": alteration.mechanism.title, "done": verb}
                for alteration in alterations
            ]
        )
        return
    for alteration in alterations:
        print(f"{alteration.user}: {verb} for {alteration.mechanism.title}")


app = command_group(list_users, add_user, remove_user)
