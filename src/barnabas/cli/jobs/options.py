"""Options that several jobs have, and the options of the Spark source that they stand for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.login import security_properties
from barnabas.cli.support.options import key_value_pairs

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be read and written, without changing anything.")
]
Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="Spark master: local[N], or spark://HOST:7077.")
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        help="Topic (default: all but internal topics); may be repeated.",
        autocompletion=candidates.topics,
    ),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="Option of the Spark source; may be repeated."),
]
ArchiveLocation = Annotated[
    str,
    typer.Argument(
        metavar="LOCATION",
        help="Directory of the archive, or its URL in an object store: s3://, gs:// or az://.",
    ),
]
ReportDirectory = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="DIRECTORY",
        help="Directory to write tables (Parquet) and report.html with plots to.",
    ),
]


def source_options(
    bootstrap: str,
    topics: Sequence[str] | None = None,
    log_dirs: Sequence[Path] = (),
    others: list[str] | None = None,
) -> dict[str, str]:
    """Return the options of the Spark source for these arguments.

    :param others: Further options, as KEY=VALUE; they take precedence.
    :raises CommandError: If one of them has another form.
    """
    options = {"subscribe": ",".join(topics)} if topics else {"subscribePattern": ".*"}
    if bootstrap:
        options |= connection_options(bootstrap)
    if log_dirs:
        options |= {"transport": "files", "logDirs": ",".join(map(str, log_dirs))}
    return options | dict(key_value_pairs(others, "--option"))


def check_local(path: Path | None, option: str) -> None:
    """Check that the path of an option is not a URL.

    :raises CommandError: If it is.
    """
    scheme, separator, _ = str(path or "").partition(":/")
    if separator and scheme.isalnum():
        raise wrong_use(
            f"{option} {path}: must be a path on this machine; only archives can be in object stores"
        )


def connection_options(bootstrap: str) -> dict[str, str]:
    """Return the options for the brokers, with the login and TLS of `--command-config`.

    :raises OSError: If its file cannot be read.
    :raises ValueError: If a property in it is not valid.
    """
    properties = {"bootstrap.servers": bootstrap, **security_properties()}
    return {f"kafka.{name}": value for name, value in properties.items()}
