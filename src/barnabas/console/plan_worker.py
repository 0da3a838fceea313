"""The process that makes one plan for the plan page: reads a JSON request from stdin, prints a JSON outcome.

Its input comes from users of the console, so it limits its CPU time and memory, and has the lowest priority.
`plan_processes` starts and kills it.
"""

import asyncio
import contextlib
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any, TypedDict

from barnabas.base.clock import SystemClock
from barnabas.client.admin.acl_decisions import describe_acl_decisions
from barnabas.client.admin.admin import Admin
from barnabas.client.auth.principal import known_principal
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.retry import Retry
from barnabas.console.formatting import word
from barnabas.console.problems import PageError, problem_of
from barnabas.console.rendering import render
from barnabas.declared.checks import acls_after
from barnabas.declared.diff import ChangeAction, Level, ResourceChange, shown
from barnabas.declared.parser import StateFileError, read_state_text
from barnabas.declared.plan import Plan, PlanRequest, make_plan
from barnabas.declared.secrets import SecretMissing, Secrets
from barnabas.declared.state import Credential, SecretRef, Section
from barnabas.security.acl_simulation import Simulation, simulate
from barnabas.tls.settings import TlsSettings
from barnabas.wire.errors import ErrorCode, KafkaError

NICENESS = 10
MEMORY_BYTES_MAX = 1 << 30
ROWS_MAX = 5_000
#: Errors of brokers that record no decisions, or do not show them to the user.
_WITHOUT_RECORD = {
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.SECURITY_DISABLED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
_BADGES = {
    Level.WARNING: "warn",
    Level.DESTRUCTIVE: "bad",
    Level.LOCKOUT: "bad",
    Level.IMPOSSIBLE: "bad",
}


class PlanOrder(TypedDict):
    """What to plan, for which principal, and the limits."""

    text: str  #: YAML
    bootstrap: str
    principal: str
    login: dict[str, Any] | None  #: of `SaslLogin.to_plain`
    tls: dict[str, Any] | None  #: of `TlsSettings.to_plain`
    connect_timeout_ms: int
    request_timeout_ms: int
    retry_timeout_ms: int
    timeout_ms: int  #: the process ends itself after this time
    cpu_s_max: int


class UnseenSecrets(Secrets):
    """Secrets that are never resolved: a state sent to the console must not read files of its machine."""

    def __init__(self) -> None:
        super().__init__({}, Path())

    def value(self, secret: SecretRef) -> str:
        """:raises SecretMissing: Always."""
        message = f"the console reads no secrets, so this one ({secret.origin} {secret.name}) was not checked"
        raise SecretMissing(message)


def main() -> None:
    """Read the request and print the outcome: `html`, a `refusal` of the text, or a `problem` as arguments of
    PageError.
    """
    order: PlanOrder = json.load(sys.stdin)
    limit_resources(order["cpu_s_max"])
    print(json.dumps(outcome_of(order)))


def limit_resources(cpu_s_max: int) -> None:
    """Limit this process, as far as the platform can."""
    os.nice(NICENESS)
    limits = (
        (resource.RLIMIT_CPU, cpu_s_max),
        (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in limits:
        with contextlib.suppress(ValueError, OSError):  # a lower limit is set already
            resource.setrlimit(kind, (most, most))


def outcome_of(order: PlanOrder) -> dict[str, Any]:
    """Make the plan; expected errors are outcomes, too."""
    try:
        state = read_state_text(order["text"], trusted=False)
        plan, simulation = asyncio.run(_plan(order, state))
        rows = rows_of(plan.changes[:ROWS_MAX])
        shown = {"plan": plan, "rows": rows, "simulation": simulation, "rows_max": ROWS_MAX, "word": word}
        return {"html": render("plan_changes.html", shown)}
    except StateFileError as error:
        what = str(error)
        return {"refusal": f"In {what}" if what.startswith("line") else f"The state {what}"}
    except MemoryError:
        return {"refusal": f"The plan needs more than {MEMORY_BYTES_MAX >> 20} MiB of memory."}
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            raise
        return {"problem": _arguments(problem)}


def _arguments(problem: PageError) -> tuple[int, str, str, str]:
    return problem.status, problem.title, problem.text, problem.hint


async def _plan(order: PlanOrder, state: Any) -> tuple[Plan, Simulation | None]:
    clock = SystemClock()
    login = SaslLogin.from_plain(order["login"]) if order["login"] else None
    tls = TlsSettings.from_plain(order["tls"]) if order["tls"] else None
    cluster = ClusterClient(
        order["bootstrap"],
        client_id="barnabas-console",
        connect_timeout_ms=order["connect_timeout_ms"],
        request_timeout_ms=order["request_timeout_ms"],
        retry=Retry(timeout_ms=order["retry_timeout_ms"], clock=clock),
        login=login,
        tls=tls,
    )
    async with asyncio.timeout(order["timeout_ms"] / 1000), cluster:
        admin = Admin(cluster, timeout_ms=order["request_timeout_ms"])
        request = PlanRequest(state, UnseenSecrets(), principal=known_principal(login, tls))
        plan = await make_plan(admin, request, clock)
        return plan, await _simulation(admin, plan)


async def _simulation(admin: Admin, plan: Plan) -> Simulation | None:
    """Return which recorded requests would be decided otherwise; None without changes of ACLs or without a record."""
    if all(change.section is not Section.ACLS for change in plan.changes):
        return None
    try:
        record = await describe_acl_decisions(admin)
    except KafkaError as error:
        if error.code not in _WITHOUT_RECORD:
            raise
        return None
    return simulate(record, acls_after(await admin.describe_acls(), plan.changes))


def rows_of(changes: Any) -> list[dict[str, Any]]:
    """The plan's changes as rows of the table."""
    return [
        {
            "resource": change.resource,
            "key": change.key,
            "action": change.action.value,
            "kind": "bad" if change.action is ChangeAction.DELETE else "",
            "before": format_value(change.before),
            "after": format_value(change.after),
            "diagnostics": _diagnostics(change),
        }
        for change in changes
    ]


def format_value(value: Any) -> str | None:
    """A value for people, without secrets; empty for None."""
    if isinstance(value, Credential):
        return f"{value.iterations} iterations" if value.iterations else "a password"
    if value is True:
        return "set"
    text = shown(value)
    return None if text is None else f"{text:.15g}" if isinstance(text, float) else str(text)


def _diagnostics(change: ResourceChange) -> list[tuple[str, str, str]]:
    """(badge, level, text) of each diagnostic of a change."""
    return [(_BADGES.get(each.level, ""), each.level.name.lower(), each.text) for each in change.diagnostics]


if __name__ == "__main__":
    main()
