"""`barnabas export`, `plan`, `apply`, `drift`: the declared state of a cluster, any Kafka's."""

import functools
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from barnabas.cli.failures import FAILED, WRONG_USE, handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

#: What is different from what was declared, as `terraform plan -detailed-exitcode` tells it.
DIFFERENT = 2

Arguments = ParamSpec("Arguments")


class SectionArg(StrEnum):
    """Sections of a file, as people type them."""

    TOPICS = "topics"
    ACLS = "acls"
    QUOTAS = "quotas"
    USERS = "users"
    GROUPS = "groups"
    BROKERS = "brokers"
    CLIENT_METRICS = "client-metrics"


class Different(typer.Exit):
    """The end of a command that has found something to do."""

    def __init__(self) -> None:
        super().__init__(DIFFERENT)


def with_diff_exit_code(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """A guarded command whose exit code 2 says that something is different: what is typed wrongly ends with 1."""
    run = handle_errors(command)

    @functools.wraps(run)
    def compare(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            run(*args, **kwargs)
        except Different:
            raise
        except typer.Exit as ended:
            raise typer.Exit(FAILED if ended.exit_code == WRONG_USE else ended.exit_code) from None

    return compare


File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The declared state, in YAML.", show_default=False)
]
Include = Annotated[
    list[str] | None,
    typer.Option("--include", "-i", metavar="KIND/NAME", help="Only these, as 'topic/orders*'."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", "-x", metavar="KIND/NAME", help="Not these, as 'topic/test-*'."),
]
Parts = Annotated[
    list[SectionArg] | None, typer.Option("--section", "-s", help="Only this one; may be given often.")
]
Renewed = Annotated[
    list[str] | None,
    typer.Option(
        "--renew-password",
        metavar="USER",
        help="Set this user's password again, as passwords cannot be compared.",
    ),
]


@handle_errors
def export(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    include: Include = None,
    exclude: Exclude = None,
    section: Parts = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FILE", help="Bring this file up to date, and keep its comments."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write what a cluster has set as a declared state: topics, ACLs, quotas, users, configs; never a secret."""
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
    section: Parts = None,
    renew_password: Renewed = None,
    as_json: Json = False,
) -> None:
    """Show what would change, key by key, and what stands against it. Ends with 0 nothing, 2 changes, 1 failed."""
    from barnabas.cli.work import plan as work
    from barnabas.cli.work.choices import plan_request, resource_filter

    wish = plan_request(file, resource_filter(include, exclude, section), renew_password)
    if work.plan(bootstrap, wish, as_json=as_json):
        raise Different


@handle_errors
def apply(
    file: File,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    include: Include = None,
    exclude: Exclude = None,
    section: Parts = None,
    renew_password: Renewed = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    allow_destroy: Annotated[
        bool, typer.Option("--allow-destroy", help="Also apply destructive changes.")
    ] = False,
    allow_lockout: Annotated[
        bool,
        typer.Option("--allow-lockout", help="Also apply changes that take your own ALTER permission away."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Do what `plan` shows, after asking. What is interrupted goes on when it is applied again."""
    from barnabas.cli.work import apply as work
    from barnabas.cli.work.choices import plan_request, resource_filter

    wish = plan_request(file, resource_filter(include, exclude, section), renew_password)
    consent = work.Consent(yes, allow_destroy, allow_lockout)
    work.apply(bootstrap, wish, consent, as_json=as_json)


@with_diff_exit_code
def drift(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The declared state, in YAML.", show_default=False)
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="HOST:PORT", help="Another cluster instead of a file."),
    ] = None,
    include: Include = None,
    exclude: Exclude = None,
    section: Parts = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Keep running and print one JSON line per change in drift."),
    ] = False,
    interval: Annotated[float, typer.Option("--interval", min=0.1, help="Seconds between two looks.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Show where a cluster is not as declared, or not as another one. Ends with 0 nowhere, 2 somewhere, 1 failed."""
    from barnabas.cli.work import drift as work
    from barnabas.cli.work.choices import plan_request, resource_filter

    choice = resource_filter(include, exclude, section)
    compared = work.Compared(None if file is None else plan_request(file, choice), against, choice)
    if (
        work.watch(bootstrap, compared, interval)
        if watch
        else work.drift(bootstrap, compared, as_json=as_json)
    ):
        raise Different
