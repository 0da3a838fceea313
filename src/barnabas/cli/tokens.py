"""`barnabas tokens`: list, create, renew and expire delegation tokens."""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, TextIO

import typer

from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.login import current_login
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json, print_table
from barnabas.cli.support.times import format_timestamp, parse_duration_ms
from barnabas.client.admin.delegation_tokens import DelegationTokenAdmin, IssuedToken
from barnabas.client.auth.sasl import TOKEN_MECHANISM
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire.acls import principal_of
from barnabas.wire.errors import ErrorCode, KafkaError

_COLUMNS = ("token", "owner", "requester", "renewers", "issued", "expires", "expires at the latest")

TokenId = Annotated[str, typer.Argument(metavar="TOKEN", help="Id of the token.", show_default=False)]
Period = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="How long from now on, such as 12h or 7d.")
]


@command(
    "list",
    example="tokens list alice",
    apis=("DescribeDelegationToken",),
    needs=("describe delegation-token", "describe-tokens user"),
    hides=True,
)
def list_tokens(
    owners: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OWNER]...", help="Only tokens of these principals or users.", show_default=False
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List delegation tokens: your own, those that you may renew, and those that ACLs permit; without passwords."""
    principals = [principal_of(owner) for owner in owners] if owners else None
    tokens = with_cluster(bootstrap, lambda cluster: DelegationTokenAdmin(cluster).describe(principals))
    _print(sorted(tokens, key=lambda token: token.issued_ms), as_json=as_json)


@command(
    "create",
    example="tokens create --max-lifetime 7d --properties token.properties",
    apis=("CreateDelegationToken",),
    needs=("create-tokens user",),
)
def create_token(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", metavar="PRINCIPAL", help="User for whom clients log in with it (default: you)."
        ),
    ] = None,
    renewer: Annotated[
        list[str] | None,
        typer.Option(
            "--renewer", metavar="PRINCIPAL", help="User who may renew and expire it; may be repeated."
        ),
    ] = None,
    max_lifetime: Annotated[
        str | None,
        typer.Option(
            "--max-lifetime",
            metavar="DURATION",
            help="Lifetime with all renewals, such as 12h or 7d (default: the broker's limit).",
        ),
    ] = None,
    properties: Annotated[
        Path | None,
        typer.Option(
            "--properties",
            metavar="FILE",
            help="Write the properties with which clients log in to this new file instead of printing the password.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a delegation token, with which clients log in by SCRAM until it expires, without your password."""
    lifetime_ms = -1 if max_lifetime is None else parse_duration_ms(max_lifetime)
    renewers = [principal_of(name) for name in renewer or ()]
    principal = None if owner is None else principal_of(owner)
    with nullcontext() if properties is None else _new_file(properties) as file:
        token = with_cluster(
            bootstrap, lambda cluster: DelegationTokenAdmin(cluster).create(principal, renewers, lifetime_ms)
        )
        if file is not None:
            login = current_login()  # none with a client certificate alone
            mechanism = TOKEN_MECHANISM if login is None else login.mechanism_of_tokens
            file.write(f"sasl.mechanism={mechanism}\nsasl.jaas.config={token.jaas}\n")
    _print([token], as_json=as_json, shows_password=properties is None)


@command(
    "renew",
    example="tokens renew 3cpDIjWeS9WZfkCK1PJsHQ --for 1d",
    apis=("DescribeDelegationToken", "RenewDelegationToken"),
    hides=True,
)
def renew_token(
    token_id: TokenId, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, period: Period = None, as_json: Json = False
) -> None:
    """Renew a delegation token, until its maximum lifetime; by default for the period that the broker allows."""
    _change(DelegationTokenAdmin.renew, token_id, bootstrap, period, as_json=as_json)


@command(
    "expire",
    example="tokens expire 3cpDIjWeS9WZfkCK1PJsHQ",
    apis=("DescribeDelegationToken", "ExpireDelegationToken"),
    hides=True,
)
def expire_token(
    token_id: TokenId, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, period: Period = None, as_json: Json = False
) -> None:
    """Let a delegation token expire: by default now. Connections stay open until they must log in again."""
    _change(DelegationTokenAdmin.expire, token_id, bootstrap, period, as_json=as_json)


def _change(
    change: Callable[[DelegationTokenAdmin, bytes, int], Awaitable[int]],
    token_id: str,
    bootstrap: str,
    period: str | None,
    *,
    as_json: bool,
) -> None:
    """Renew or expire a token, and print when it expires.

    :param change: Gets the HMAC and the period in ms, -1 for the default; returns the time of expiry.
    """
    period_ms = -1 if period is None else parse_duration_ms(period)

    async def run(cluster: ClusterClient) -> int:
        admin = DelegationTokenAdmin(cluster)
        return await change(admin, await _hmac(admin, token_id), period_ms)

    expires_ms = with_cluster(bootstrap, run)
    if as_json:
        print_json({"token": token_id, "expires_ms": expires_ms})
    else:
        print(f"{token_id}: expires {format_timestamp(expires_ms)}")


async def _hmac(admin: DelegationTokenAdmin, token_id: str) -> bytes:
    for token in await admin.describe():
        if token.token_id == token_id:
            return token.hmac
    message = f"delegation token '{token_id}' does not exist, or you may not see it"
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, message)


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    """Open a new file that only its owner can read; it is removed after an error."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise


def _print(tokens: list[IssuedToken], *, as_json: bool, shows_password: bool = False) -> None:
    if as_json:
        print_json([_plain(token, shows_password=shows_password) for token in tokens])
        return
    rows = [
        (
            token.token_id,
            token.owner,
            token.requester,
            " ".join(token.renewers),
            *map(format_timestamp, (token.issued_ms, token.expires_ms, token.expires_max_ms)),
        )
        for token in tokens
    ]
    print_table(_COLUMNS, rows)
    if shows_password:
        for token in tokens:
            print(f"password: {token.password}")


def _plain(token: IssuedToken, *, shows_password: bool) -> dict[str, object]:
    plain: dict[str, object] = {
        "token": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "expires_max_ms": token.expires_max_ms,
    }
    return {**plain, "password": token.password} if shows_password else plain


app = command_group(list_tokens, create_token, renew_token, expire_token)
