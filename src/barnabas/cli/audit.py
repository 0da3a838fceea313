"""`barnabas audit`, `barnabas history`, `barnabas rollback`: who has changed what, what it was, and back to that."""

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
        help="Only this one, as topic/orders; a name may end in *.",
        autocompletion=candidates.resources,
    ),
]


@handle_errors
def audit(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    resource: Resource = None,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="PRINCIPAL", help="Only of this one, as User:alice.")
    ] = None,
    api: Annotated[str | None, typer.Option("--api", help="Only by this request, as CreateTopics.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="Only what was changed, refused or warned of.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only events since this time: 2026-01-31T09:30, 1767225600000 or 10m.",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    as_json: Json = False,
) -> None:
    """Show who has changed what of the cluster, and who wanted to and was refused."""
    from barnabas.cli.work import audit as work

    wanted = work.AuditFilter(resource, principal, api, work.outcome_of(outcome), work.time_of(since))
    work.show(bootstrap, wanted, follow=follow, as_json=as_json)


@handle_errors
def history(
    resource: Annotated[
        str,
        typer.Argument(
            metavar="KIND/NAME",
            help="A resource, as topic/orders.",
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
        int | None, typer.Option("--since", metavar="REVISION", min=0, help="What is different from then.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show each change of a resource; with --at what it was like, with --since what has become different."""
    from barnabas.cli.work import audit as work

    work.history(bootstrap, resource, at, since, as_json=as_json)


@handle_errors
def rollback(
    resource: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="A resource, as topic/orders.", show_default=False)
    ],
    to: Annotated[
        int,
        typer.Option(
            "--to", metavar="REVISION", min=0, help="As 'barnabas history' has it.", show_default=False
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: Json = False,
) -> None:
    """Give a resource the configs, ACLs, quotas and credentials that it had at a revision."""
    from barnabas.cli.work import audit as work

    work.roll_back(bootstrap, resource, to, dry_run=dry_run, as_json=as_json)
