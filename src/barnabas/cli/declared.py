"""`barnabas export`, `plan`, `apply`, `drift`: the declared state of any Kafka cluster."""

import functools
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from barnabas.cli.failures import FAILED, WRONG_USE, handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

#: Exit code for differences from the declared state, as of `terraform plan -detailed-exitcode`.
DIFFERENT = 2

Arguments = ParamSpec("Arguments")


class SectionArg(StrEnum):
    """Sections of a file, as in arguments."""

    TOPICS = "topics"
    ACLS = "acls"
    QUOTAS = "quotas"
    USERS = "users"
    GROUPS = "groups"
    BROKERS = "brokers"
    CLIENT_METRICS = "client-metrics"


class DifferenceFound(typer.Exit):
    """Raised by a command that has found differences; sets exit code 2."""

    def __init__(self) -> None:
        super().__init__(DIFFERENT)


def with_diff_exit_code(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Handle errors of a command whose exit code 2 means differences: invalid arguments exit with 1 instead of 2."""
    run = handle_errors(command)

    @functools.wraps(run)
    def compare(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            run(*args, **kwargs)
        except DifferenceFound:
            raise
        except typer.Exit as error:
            raise typer.Exit(FAILED if error.exit_code == WRONG_USE else error.exit_code) from None

    return compare


File = Annotated[
    Path, typer.Argument(metavar="FILE", help="YAML file with the declared state.", show_default=False)
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        "-i",
        metavar="KIND/NAME",
        help="Only resources that match, such as 'topic/orders*'; may be repeated.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        "-x",
        metavar="KIND/NAME",
        help="Leave out resources that match, such as 'topic/test-*'; may be repeated.",
    ),
]
Sections = Annotated[
    list[SectionArg] | None,
    typer.Option("--section", "-s", help="Only this section (default: all); may be repeated."),
]
RenewPassword = Annotated[
    list[str] | None,
    typer.Option(
        "--renew-password",
        metavar="USER",
        help="Set this user's password again; a stored password cannot be comparison.",
    ),
]


@handle_errors
def export(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    include: Include = None,
    exclude: Exclude = None,
    section: Sections = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FILE", help="Update this file and keep its comments."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Export topics, ACLs, quotas, users and configs of a cluster as a declared state, without secrets."""
    from barnabas.cli.work import export as work
    from barnabas.cli.work.choices import resource_filter

    choice = resource_filter(include, exclude, section)
    if into is None:
        work.export(bootstrap, choice, as_json=as_json)
    else:
        work.update(bootstrap, into, choice, as_json=as_json)


@with_diff_exit_code
def plan(
    file: File,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    include: Include = None,
    exclude: Exclude = None,
    section: Sections = None,
    renew_password: RenewPassword = None,
    as_json: Json = False,
) -> None:
    """Show what would change, key by key, and what is wrong with it. Exit code: 0 no changes, 2 changes, 1 failed."""
    from barnabas.cli.work import plan as work
    from barnabas.cli.work.choices import plan_request, resource_filter

    request = plan_request(file, resource_filter(include, exclude, section), renew_password)
    if work.plan(bootstrap, request, as_json=as_json):
        raise DifferenceFound


@handle_errors
def apply(
    file: File,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    include: Include = None,
    exclude: Exclude = None,
    section: Sections = None,
    renew_password: RenewPassword = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    allow_destroy: Annotated[
        bool, typer.Option("--allow-destroy", help="Also apply destructive changes.")
    ] = False,
    allow_lockout: Annotated[
        bool,
        typer.Option(
            "--allow-lockout", help="Also apply changes that remove your own ALTER permission on the cluster."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Apply the changes that `plan` shows, after confirmation. Run it again to continue an interrupted apply."""
    from barnabas.cli.work import apply as work
    from barnabas.cli.work.choices import plan_request, resource_filter

    request = plan_request(file, resource_filter(include, exclude, section), renew_password)
    consent = work.Consent(yes, allow_destroy, allow_lockout)
    work.apply(bootstrap, request, consent, as_json=as_json)


@with_diff_exit_code
def drift(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="YAML file with the declared state.", show_default=False),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="HOST:PORT", help="Compare with this cluster instead of a file."),
    ] = None,
    include: Include = None,
    exclude: Exclude = None,
    section: Sections = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Keep running and print one JSON line per change in drift."),
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds between two comparisons, with --watch.")
    ] = 30.0,
    as_json: Json = False,
) -> None:
    """Show differences from a declared state or another cluster. Exits with 0 (no drift), 2 (drift) or 1 (failed)."""
    from barnabas.cli.work import drift as work
    from barnabas.cli.work.choices import plan_request, resource_filter

    choice = resource_filter(include, exclude, section)
    comparison = work.Comparison(None if file is None else plan_request(file, choice), against, choice)
    if (
        work.watch(bootstrap, comparison, interval)
        if watch
        else work.drift(bootstrap, comparison, as_json=as_json)
    ):
        raise DifferenceFound
