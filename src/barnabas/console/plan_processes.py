"""Makes the console's plans, each in a process of its own that can be killed (`plan_worker`)."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.console.problems import PageError
from barnabas.telemetry.logs import get_logger

if TYPE_CHECKING:
    from barnabas.console.plan_worker import PlanOrder

_log = get_logger("barnabas.console")

#: In all, and for one principal.
PROCESSES_MAX = 2
CPU_S_MAX = 15
COMMAND = (sys.executable, "-P", "-m", "barnabas.console.plan_worker")
_STDERR_CHARACTERS_MAX = 4_000


class PlanProcesses:
    """Starts worker processes, few at a time. Each ends with its request."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._running: dict[str, subprocess.Popen[str]] = {}

    async def make(self, order: "PlanOrder") -> dict[str, Any]:
        """Return the outcome that the worker prints; kill the worker on cancellation.

        :raises PageError: When too many plans are being made, or this one exceeds its limits.
        """
        principal = order["principal"]
        self._check_room(principal)
        process = self._running[principal] = self._start()
        try:
            output, errors = await asyncio.to_thread(process.communicate, json.dumps(order))
        finally:
            process.kill()  # ends `communicate`, which reaps it
            del self._running[principal]
        return _outcome(process.returncode, output, errors)

    def _check_room(self, principal: str) -> None:
        hint = "Try again when it is complete, or use barnabas plan."
        if principal in self._running:
            raise PageError(503, "One plan at a time", f"Another plan of {principal} is in progress.", hint)
        if len(self._running) >= PROCESSES_MAX:
            text = f"{len(self._running)} plans are in progress, which is the maximum."
            raise PageError(503, "Too many plans", text, hint)

    def _start(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C goes to the console, which kills the worker
            env=environment,
        )

    def statistics(self) -> dict[str, int]:
        return {"running": len(self._running)}


def _outcome(status: int, output: str, errors: str) -> dict[str, Any]:
    if status < 0:
        text = f"The plan exceeded the limit of {CPU_S_MAX} s of CPU time."
        hint = "Split the declared state, or use barnabas plan."
        raise PageError(422, "The plan takes too long", text, hint)
    if status:
        _log.error("plan process failed", status=status, errors=errors[-_STDERR_CHARACTERS_MAX:])
        message = f"the plan process ended with status {status}"
        raise RuntimeError(message)
    outcome: dict[str, Any] = json.loads(output)
    if "problem" in outcome:
        raise PageError(*outcome["problem"])
    return outcome
