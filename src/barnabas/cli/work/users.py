"""What `barnabas users` does."""

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


def given_password(option: str | None) -> str:
    """The password that was given: as text, in a file (@FILE), on the terminal, or on stdin (-).

    :raises Failure: When there is none.
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
        raise wrong_use("a password is missing", "give it on stdin, or with --password @FILE")
    return password


def show_list(bootstrap: str, names: Sequence[str] | None, *, as_json: bool) -> None:
    """Print those users, or all.

    :raises KafkaError: RESOURCE_NOT_FOUND for one that is not there, when the others are printed.
    """
    found = with_admin(bootstrap, lambda admin: admin.describe_user_scram_credentials(names))
    users = {name: each for name, each in sorted(found.items()) if not isinstance(each, KafkaError)}
    if as_json:
        print_json([{"user": name, "mechanisms": _by_title(each)} for name, each in users.items()])
        raise_all(found.values())
        return
    rows = [
        (name, title, iterations)
        for name, each in users.items()
        for title, iterations in _by_title(each).items()
    ]
    print_table(("user", "mechanism", "iterations"), rows)
    raise_all(found.values())
    if not users:
        notice("no users yet: 'barnabas users add NAME' makes one")


def _by_title(iterations: dict[ScramMechanism, int]) -> dict[str, int]:
    return {mechanism.title: count for mechanism, count in iterations.items()}


def add(
    bootstrap: str, name: str, password: str, titles: Sequence[str], iterations: int, *, as_json: bool
) -> None:
    """Set a user's password for those mechanisms, or for all."""
    upsertions = [
        Upsertion(name, MECHANISMS_BY_TITLE[title], password, iterations)
        for title in titles or MECHANISMS_BY_TITLE
    ]
    with_admin(bootstrap, lambda admin: _alter(admin, upsertions))
    _print_done("added", upsertions, as_json=as_json)


def remove(bootstrap: str, name: str, titles: Sequence[str], *, as_json: bool) -> None:
    """Take a user's credentials for those mechanisms, or all that there are."""
    deletions = with_admin(bootstrap, lambda admin: _remove(admin, name, titles))
    _print_done("removed", deletions, as_json=as_json)


async def _remove(admin: Admin, name: str, titles: Sequence[str]) -> list[UserScramCredentialDeletion]:
    described = await admin.describe_user_scram_credentials([name])
    raise_errors(described.values())
    there = described[name]
    assert not isinstance(there, KafkaError)
    mechanisms = [MECHANISMS_BY_TITLE[title] for title in titles] or list(there)
    deletions = [UserScramCredentialDeletion(name, mechanism) for mechanism in mechanisms]
    await _alter(admin, deletions)
    return deletions


async def _alter(admin: Admin, alterations: Sequence[Upsertion | UserScramCredentialDeletion]) -> None:
    """One after another: a request may name a user only once."""
    for alteration in alterations:
        outcomes = await admin.alter_user_scram_credentials([alteration])
        raise_errors(outcomes.values())
        if alteration.user not in outcomes:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer about user '{alteration.user}'")


def _print_done(verb: str, done: Sequence[Upsertion | UserScramCredentialDeletion], *, as_json: bool) -> None:
    if as_json:
        print_json([{"user": each.user, "mechanism": each.mechanism.title, "done": verb} for each in done])
        return
    for each in done:
        print(f"{each.user}: {verb} for {each.mechanism.title}")
