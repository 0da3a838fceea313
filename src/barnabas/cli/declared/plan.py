"""`barnabas plan`, and printing of plans."""

from collections.abc import Iterable
from typing import Any

from barnabas.base.clock import SystemClock
from barnabas.cli.declared.exit_codes import DifferenceFound, with_diff_exit_code
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
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import Row, print_json, print_table
from barnabas.declared.diff import ChangeAction, Level, ResourceChange, shown
from barnabas.declared.plan import Plan, make_plan
from barnabas.declared.state import Credential

_COLUMNS = ("", "resource", "key", "before", "after", "")
_MARKS = {
    ChangeAction.CREATE: "+",
    ChangeAction.ALTER: "~",
    ChangeAction.DELETE: "-",
    ChangeAction.EXPECT: "!",
}
_FLAGS = {Level.DESTRUCTIVE: "destructive", Level.LOCKOUT: "lockout", Level.IMPOSSIBLE: "impossible"}


@with_diff_exit_code
@command("plan", example="plan cluster.yaml --include 'topic/*'", apis=READING_APIS, needs=READING_NEEDS)
def plan(
    file: File,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    include: Include = None,
    exclude: Exclude = None,
    section: Sections = None,
    renew_password: RenewPassword = None,
    as_json: Json = False,
) -> None:
    request = plan_request(file, resource_filter_of(include, exclude, section), renew_password)
    result = with_admin(bootstrap, lambda admin: make_plan(admin, request, SystemClock()))
    if as_json:
        print_json(result.as_json())
    else:
        print_plan(result)
    if result.changes:
        raise DifferenceFound


def print_plan(plan: Plan) -> None:
    """Print a table of the changes, the diagnostics, and a summary."""
    if not plan.changes:
        print("No changes: the cluster has the declared state.")
        return
    print_table(_COLUMNS, [_row(change) for change in plan.changes])
    for line in format_diagnostics(plan.changes):
        print(line)
    print(summary(plan))


def _row(change: ResourceChange) -> Row:
    before, after = (format_value(value) for value in (change.before, change.after))
    return _MARKS[change.action], change.resource, change.key, before, after, _FLAGS.get(change.level, "")


def format_value(value: Any) -> str:
    """Format a value for a table; None as a dash."""
    if isinstance(value, Credential):
        return f"iterations={value.iterations}" if value.iterations else "password"
    if value is True:
        return "set"
    text = shown(value)
    return "-" if text is None else f"{text:.15g}" if isinstance(text, float) else str(text)


def format_diagnostics(changes: Iterable[ResourceChange]) -> list[str]:
    """Return lines such as `warning: topic/orders partitions: 50% of keys ...`; each text once per resource."""
    lines: dict[tuple[str, str], str] = {}
    for change in changes:
        for level, text in change.diagnostics:
            line = f"{level.name.lower()}: {change.resource} {change.key}: {text}"
            lines.setdefault((change.resource, text), line)
    return list(lines.values())


def summary(plan: Plan) -> str:
    """Return the numbers of changes by action, and of those that are destructive, a lockout or impossible."""
    counts = plan.counts
    actions = [f"{counts[action.value]} to {action.value}" for action in ChangeAction if counts[action.value]]
    problems = [f"{counts[word]} {word}" for word in ("destructive", "lockout", "impossible") if counts[word]]
    return "; ".join(", ".join(group) for group in (actions, problems) if group)
