"""Implementation of `barnabas users`."""

import getpass
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.failures import wrong_use
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.outcomes import raise_all
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.scram import Upsertion, UserScramCredentialDeletion
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import MECHANISMS_BY_TITLE, ScramMechanism


def read_password(option: str | None) -> str:
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


def show_list(bootstrap: str, names: Sequence[str] | None, *, as_json: bool) -> None:
    """Print these users, or all users.

    :raises KafkaError: RESOURCE_NOT_FOUND for a user that does not exist, after the others are printed.
    """
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


def add(
    bootstrap: str, name: str, password: str, titles: Sequence[str], iterations: int, *, as_json: bool
) -> None:
    """Set the password of a user for these mechanisms, or for all mechanisms."""
    upsertions = [
        Upsertion(name, MECHANISMS_BY_TITLE[title], password, iterations)
        for title in titles or MECHANISMS_BY_TITLE
    ]
    with_admin(bootstrap, lambda admin: _alter(admin, upsertions))
    _print_done("added", upsertions, as_json=as_json)


def remove(bootstrap: str, name: str, titles: Sequence[str], *, as_json: bool) -> None:
    """Remove the credentials of a user for these mechanisms, or all its credentials."""
    deletions = with_admin(bootstrap, lambda admin: _remove(admin, name, titles))
    _print_done("removed", deletions, as_json=as_json)


async def _remove(admin: Admin, name: str, titles: Sequence[str]) -> list[UserScramCredentialDeletion]:
    described = await admin.describe_user_scram_credentials([name])
    raise_errors(described.values())
    credentials = described[name]
    assert not isinstance(credentials, KafkaError)
    mechanisms = [MECHANISMS_BY_TITLE[title] for title in titles] or list(credentials)
    deletions = [UserScramCredentialDeletion(name, mechanism) for mechanism in mechanisms]
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
