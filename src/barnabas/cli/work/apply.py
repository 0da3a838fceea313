"""What `barnabas apply` does: show the plan, ask, do it, say what became of it."""

import contextlib
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.base.clock import SystemClock
from barnabas.cli.failures import CommandError, wrong_use
from barnabas.cli.output import print_json
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.plan import print_plan
from barnabas.cli.work.progress import progress
from barnabas.client.admin.admin import Admin
from barnabas.declared.apply import ChangeResult, ChangeStatus, apply_plan
from barnabas.declared.diff import Level, as_json
from barnabas.declared.plan import Plan, PlanRequest, make_plan


@dataclass(frozen=True)
class Consent:
    """What somebody has agreed to beforehand."""

    yes: bool = False
    destroy: bool = False
    lockout: bool = False

    def ask(self, plan: Plan) -> bool:
        """Whether the plan may be done; whoever sits at a terminal is asked for what is missing.

        :raises CommandError: When it may not, and cannot ask for confirmation: stdin is not a terminal.
        """
        destructive = len(plan.at(Level.DESTRUCTIVE))
        if plan.at(Level.LOCKOUT) and not self.lockout:
            raise CommandError(
                "applying this plan would lock you out of the cluster", hint="--allow-lockout, if it is meant"
            )
        if not _is_terminal():
            if destructive and not self.destroy:
                message = f"{destructive} changes are destructive"
                raise CommandError(message, hint="--allow-destroy, or leave them out with --exclude")
            if not self.yes:
                raise wrong_use("cannot ask for confirmation: stdin is not a terminal", "--yes")
            return True
        if destructive and not self.destroy:
            return _answer(f"{destructive} changes cannot be undone. Type 'destroy' to go on: ") == "destroy"
        return self.yes or _answer("Apply? [y/N] ") in ("y", "yes")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower()


def apply(bootstrap: str, wish: PlanRequest, consent: Consent, *, as_json: bool) -> None:
    """Make a plan, do it, and print what became of it.

    :raises CommandError: When something is left to do.
    """
    with_admin(bootstrap, lambda admin: _apply(admin, wish, consent, as_json=as_json))


async def _apply(admin: Admin, wish: PlanRequest, consent: Consent, *, as_json: bool) -> None:
    plan = await make_plan(admin, wish, SystemClock())
    with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
        if not as_json or _is_terminal():  # who is asked must see what for
            print_plan(plan)
    if not plan.changes:
        _print([], as_json=as_json)
        return
    if not consent.ask(plan):
        raise CommandError("nothing was applied")
    with progress(len(plan.changes), of_records=True) as advance:
        outcomes = await apply_plan(admin, plan, wish, advance)
    _print(outcomes, as_json=as_json)
    undone = sum(each.fate is not ChangeStatus.DONE for each in outcomes)
    if undone:
        message = f"{undone} of {len(outcomes)} changes are not done"
        raise CommandError(
            message, hint="'barnabas plan' shows what is left; apply again once nothing stands against it"
        )


def _print(outcomes: Sequence[ChangeResult], *, as_json: bool) -> None:
    if as_json:
        print_json([_outcome(each) for each in outcomes])
        return
    for each in outcomes:
        if each.fate is not ChangeStatus.DONE:
            print(f"{each.fate}: {each.change.resource} {each.change.key}: {each.reason}")
    counts = Counter(each.fate for each in outcomes)
    if outcomes:
        print(", ".join(f"{counts[fate]} {fate}" for fate in ChangeStatus if counts[fate]))


def _outcome(outcome: ChangeResult) -> dict[str, object]:
    return {**as_json(outcome.change), "outcome": outcome.fate.value, "reason": outcome.reason}
