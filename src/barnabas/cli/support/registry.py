"""Options and helpers of commands that use a schema registry."""

from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.cli.support.extras import check_registry_installed
from barnabas.cli.support.failures import NOT_FOUND, CommandError, warn

if TYPE_CHECKING:
    from barnabas.registry.codecs.records import RecordDecoder, ValueEncoder

Registry = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="BARNABAS_REGISTRY",
        help="Schema registry, such as http://127.0.0.1:8081 or https://USER:PASSWORD@HOST:PORT.",
    ),
]


def record_decoder(url: str, *, as_json: bool) -> "RecordDecoder":
    """Return a decoder, which reports problems on stderr.

    :raises CommandError: If packages are missing.
    :raises ValueError: If the URL is not valid.
    """
    check_registry_installed()
    from barnabas.registry.client import RegistryClient
    from barnabas.registry.codecs.records import RecordDecoder

    def report(problem: str) -> None:
        warn(f"not decoded: {problem}", as_json=as_json)

    return RecordDecoder(RegistryClient(url), SystemClock().monotonic_ms, report)


def value_encoder(url: str, subject: str, message: str = "") -> "ValueEncoder":
    """Return an encoder with the latest schema of a subject.

    :raises CommandError: If there is no such subject, or its schema cannot be used.
    :raises RegistryUnavailable: If the registry does not respond.
    """
    check_registry_installed()
    from barnabas.registry.client import RegistryClient
    from barnabas.registry.codecs.errors import MalformedValue
    from barnabas.registry.codecs.records import ValueEncoder
    from barnabas.registry.errors import RegistryError
    from barnabas.registry.schemas import InvalidSchema

    try:
        return ValueEncoder(RegistryClient(url), subject, message)
    except RegistryError as error:
        hint = "register a schema for this subject, or choose another one with --subject"
        raise CommandError(
            f"subject '{subject}': {error}", hint=hint, exit_code=NOT_FOUND, kind="SUBJECT_NOT_FOUND"
        ) from error
    except (InvalidSchema, MalformedValue) as error:
        raise CommandError(f"subject '{subject}': {error}") from error
