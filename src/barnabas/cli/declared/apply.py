"""`barnabas apply`: show the plan, ask for confirmation, apply it, print the results."""

import contextlib
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.base.plurals import plural
from barnabas.cli.declared.options import (
    READING_APIS,
    READING_NEEDS,
    Exclude,
    File,
    Include,
    RenewPassword,
    Sections,
    plan_request,
    resource_filter_of,
)
from barnabas.cli.declared.plan import print_plan
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import CommandError, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json
from barnabas.cli.support.progress import progress
from barnabas.client.admin.admin import Admin
from barnabas.declared.apply import ChangeResult, ChangeStatus, apply_plan
from barnabas.declared.diff import as_json as change_json
from barnabas.declared.plan import Plan, PlanRequest, make_plan


@dataclass(frozen=True)
class Consent:
    """What the user has confirmed by options."""

    yes: bool = False
    destroy: bool = False
    lockout: bool = False

    def ask(self, plan: Plan) -> bool:
        """Return whether to apply the plan; on a terminal, ask for missing confirmations.

        :raises CommandError: If a confirmation is missing and stdin is not a terminal, or on a lockout.
        """
        destructive = plan.counts["destructive"]
        if plan.counts["lockout"] and not self.lockout:
            raise CommandError(
                "applying this plan would lock you out of the cluster",
                hint="--allow-lockout, if this is intended",
            )
        if not _is_terminal():
            if destructive and not self.destroy:
                message = plural(destructive, "change is destructive", "changes are destructive")
                raise CommandError(message, hint="--allow-destroy, or leave the changes out with --exclude")
            if not self.yes:
                raise wrong_use("cannot ask for confirmation: stdin is not a terminal", "--yes")
            return True
        if destructive and not self.destroy:
            changes = plural(destructive, "change")
            return _prompt(f"{changes} cannot be undone. Type 'destroy' to continue: ") == "destroy"
        return self.yes or _prompt("Apply? [y/N] ") in ("y", "yes")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _prompt(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower()


@command(
    "apply",
    example="apply cluster.yaml --yes --allow-destroy",
    apis=READING_APIS,
    needs=READING_NEEDS,
    details="Each change also needs its own permission, such as create, alter or delete on the topic.",
)
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
            "--allow-lockout",
            help="Also apply changes after which you could no longer alter the cluster or log in.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    request = plan_request(file, resource_filter_of(include, exclude, section), renew_password)
    consent = Consent(yes, allow_destroy, allow_lockout)
    with_admin(bootstrap, lambda admin: _apply(admin, request, consent, as_json=as_json))


async def _apply(admin: Admin, request: PlanRequest, consent: Consent, *, as_json: bool) -> None:
    plan = await make_plan(admin, request, SystemClock())
    with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
        if not as_json or _is_terminal():  # the user must see the plan before confirming it
            print_plan(plan)
    if not plan.changes:
        _print([], as_json=as_json)
        return
    if not consent.ask(plan):
        raise CommandError(
            "not confirmed: nothing was applied",
            hint="answer 'y', or 'destroy' for destructive changes; or use --yes and --allow-destroy",
        )
    with progress(len(plan.changes)) as advance:
        results = await apply_plan(admin, plan, request, advance)
    _print(results, as_json=as_json)
    failed_count = sum(result.status is not ChangeStatus.DONE for result in results)
    if failed_count:
        changes = plural(len(results), "change was", "changes were")
        message = f"{failed_count} of {changes} not applied, or not confirmed"
        raise CommandError(
            message, hint="'barnabas plan' shows the remaining changes; fix the causes and apply again"
        )


def _print(results: Sequence[ChangeResult], *, as_json: bool) -> None:
    if as_json:
        print_json([_result_json(result) for result in results])
        return
    for result in results:
        if result.status is not ChangeStatus.DONE:
            print(f"{result.status}: {result.change.resource} {result.change.key}: {result.reason}")
    counts = Counter(result.status for result in results)
    if results:
        print(", ".join(f"{counts[status]} {status}" for status in ChangeStatus if counts[status]))


def _result_json(result: ChangeResult) -> dict[str, object]:
    return {**change_json(result.change), "status": result.status.value, "reason": result.reason}
