"""`barnabas audit`, `barnabas history`, `barnabas rollback`: changes of the cluster, earlier values, and going back."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

Resource = Annotated[
    str | None,
    typer.Option(
        "--resource",
        "-r",
        metavar="KIND/NAME",
        help="Only changes of this resource, such as topic/orders; the name may end in *.",
        autocompletion=candidates.resources,
    ),
]


@handle_errors
def audit(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    resource: Resource = None,
    principal: Annotated[
        str | None,
        typer.Option(
            "--principal", metavar="PRINCIPAL", help="Only changes by this principal, such as User:alice."
        ),
    ] = None,
    api: Annotated[
        str | None, typer.Option("--api", help="Only changes by this request, such as CreateTopics.")
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option("--outcome", help="Only events with this outcome: changed, refused or warned."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only events since this time: 2026-01-31T09:30, 1767225600000 or 10m (10 minutes ago).",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep running and print new events.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show changes of the cluster and refused changes, with the principal that requested them."""
    from barnabas.cli.work import audit as work

    event_filter = work.AuditFilter(resource, principal, api, work.outcome_of(outcome), work.time_of(since))
    work.show(bootstrap, event_filter, follow=follow, as_json=as_json)


@handle_errors
def history(
    resource: Annotated[
        str,
        typer.Argument(
            metavar="KIND/NAME",
            help="Resource, such as topic/orders.",
            show_default=False,
            autocompletion=candidates.resources,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="REVISION", min=0, help="Show the resource as of this revision."),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option("--since", metavar="REVISION", min=0, help="Show the differences from this revision."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the changes of a resource; with --at its state at a revision, with --since what changed since one."""
    from barnabas.cli.work import audit as work

    work.history(bootstrap, resource, at, since, as_json=as_json)


@handle_errors
def rollback(
    resource: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="Resource, such as topic/orders.", show_default=False)
    ],
    to: Annotated[
        int,
        typer.Option(
            "--to",
            metavar="REVISION",
            min=0,
            help="Revision to go back to, as shown by 'barnabas history'.",
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, without changing it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the configs, ACLs, quotas and credentials of a resource back to those of a revision."""
    from barnabas.cli.work import audit as work

    work.roll_back(bootstrap, resource, to, dry_run=dry_run, as_json=as_json)
