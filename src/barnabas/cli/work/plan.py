"""What `barnabas plan` does, and how a plan is shown."""

from collections.abc import Iterable
from typing import Any

from barnabas.base.clock import SystemClock
from barnabas.cli.output import Row, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.declared.diff import ChangeAction, Level, ResourceChange, shown
from barnabas.declared.plan import Plan, PlanRequest, make_plan
from barnabas.declared.state import Credential

COLUMNS = ("", "resource", "key", "before", "after", "")
_MARKS = {
    ChangeAction.CREATE: "+",
    ChangeAction.ALTER: "~",
    ChangeAction.DELETE: "-",
    ChangeAction.EXPECT: "!",
}
_FLAGS = {Level.DESTRUCTIVE: "destructive", Level.LOCKOUT: "lockout", Level.IMPOSSIBLE: "impossible"}


def plan(bootstrap: str, wish: PlanRequest, *, as_json: bool) -> bool:
    """Print what would be done; gives whether there is anything."""
    made = with_admin(bootstrap, lambda admin: make_plan(admin, wish, SystemClock()))
    if as_json:
        print_json(made.as_json())
    else:
        print_plan(made)
    return bool(made.changes)


def print_plan(made: Plan) -> None:
    """A table of the changes, what is to be known of them, and how many they are."""
    if not made.changes:
        print("Nothing to do: the cluster has the declared state.")
        return
    print_table(COLUMNS, [_row(each) for each in made.changes])
    for line in remarks(made.changes):
        print(line)
    print(summary(made))


def _row(change: ResourceChange) -> Row:
    before, after = (shown_value(value) for value in (change.before, change.after))
    return _MARKS[change.action], change.resource, change.key, before, after, _FLAGS.get(change.level, "")


def shown_value(value: Any) -> str:
    """A value for people: nothing as a dash."""
    if isinstance(value, Credential):
        return f"iterations={value.iterations}" if value.iterations else "password"
    if value is True:
        return "set"
    text = shown(value)
    return "-" if text is None else f"{text:.15g}" if isinstance(text, float) else str(text)


def remarks(changes: Iterable[ResourceChange]) -> list[str]:
    """What is to be known, once of each thing: `topic/orders partitions: 50% of keys ...`."""
    told: dict[tuple[str, str], str] = {}
    for change in changes:
        for level, text in change.remarks:
            line = f"{level.name.lower()}: {change.resource} {change.key}: {text}"
            told.setdefault((change.resource, text), line)
    return list(told.values())


def summary(made: Plan) -> str:
    """How many changes there are."""
    done = [
        f"{made.counts[action.value]} to {action.value}"
        for action in ChangeAction
        if made.counts[action.value]
    ]
    grave = [f"{made.counts[word]} {word}" for word in ("destructive", "impossible") if made.counts[word]]
    return "; ".join(", ".join(part) for part in (done, grave) if part)
