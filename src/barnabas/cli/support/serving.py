"""What commands share that serve HTTP."""

import ssl
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.cli.support.failures import CommandError

Keystore = Annotated[
    Path | None,
    typer.Option(
        "--keystore",
        metavar="FILE",
        help="Serve HTTPS with the private key and the certificates in this PEM file; that of the key comes first.",
    ),
]


def https_context(keystore: Path) -> ssl.SSLContext:
    """Return the context, which follows changes of the file.

    :raises CommandError: If the file cannot be used.
    """
    from barnabas.tls.contexts import server_context
    from barnabas.tls.reloading import ReloadingContext
    from barnabas.tls.settings import KeyStore, TlsError, TlsSettings

    settings = TlsSettings(KeyStore("PEM", location=str(keystore)))
    try:
        return ReloadingContext(settings, server_context, SystemClock().monotonic_ms).following()
    except TlsError as error:
        raise CommandError(f"--keystore {keystore}: {error.reason}") from error


def exit_by_signal(number: int, frame: FrameType | None) -> None:
    """Exit with 0: a signal ends a server regularly; uvicorn raises it again after its shutdown.

    :raises SystemExit: Always, with 0.
    """
    raise SystemExit(0)
