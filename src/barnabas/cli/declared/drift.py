"""`barnabas drift`: compare a cluster with a declared state or another cluster, once or repeatedly."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.cli.declared.exit_codes import DifferenceFound, with_diff_exit_code
from barnabas.cli.declared.options import (
    READING_APIS,
    READING_NEEDS,
    Exclude,
    Include,
    Sections,
    plan_request,
    resource_filter_of,
)
from barnabas.cli.declared.plan import format_value
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.login import current_login, current_tls
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json, print_table
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.declared.diff import ResourceChange
from barnabas.declared.drift import DriftEvent, Find, drift_json, from_declared, from_other, watched
from barnabas.declared.plan import PlanRequest
from barnabas.declared.state import ResourceFilter
from barnabas.wire.errors import KafkaError

_COLUMNS = ("resource", "key", "declared", "found")


@dataclass(frozen=True)
class Comparison:
    """What a cluster is compared with: a declared state, or another cluster."""

    request: PlanRequest | None
    against: str | None
    resource_filter: ResourceFilter

    def __post_init__(self) -> None:
        if (self.request is None) == (self.against is None):
            raise wrong_use("exactly one of FILE and --against is required", "barnabas drift cluster.yaml")


@with_diff_exit_code
@command("drift", example="drift cluster.yaml --watch --interval 60", apis=READING_APIS, needs=READING_NEEDS)
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
    resource_filter = resource_filter_of(include, exclude, section)
    comparison = Comparison(
        None if file is None else plan_request(file, resource_filter), against, resource_filter
    )
    if watch:
        is_different = with_admin(bootstrap, lambda admin: _watch(admin, comparison, interval))
    else:
        is_different = _compare(bootstrap, comparison, as_json=as_json)
    if is_different:
        raise DifferenceFound


def _compare(bootstrap: str, comparison: Comparison, *, as_json: bool) -> bool:
    """Print the differences, and return whether there are any."""

    async def find(admin: Admin) -> Sequence[ResourceChange]:
        async with contextlib.AsyncExitStack() as stack:
            return await (await _finder(admin, comparison, stack))()

    differences = with_admin(bootstrap, find)
    if as_json:
        print_json({"differences": [drift_json(difference) for difference in differences]})
    elif differences:
        print_table(_COLUMNS, [_row(difference) for difference in differences])
    else:
        print("No drift.")
    return bool(differences)


async def _watch(admin: Admin, comparison: Comparison, interval_s: float) -> bool:
    """Print a line of JSON for each difference that appears or disappears; return whether any is left at the end.

    SIGINT and SIGTERM end it. If a comparison fails, the failure is printed, and the next one is tried.

    :raises KafkaError: The error of the last comparison, if none succeeded.
    :raises ConnectionError: The error of the last comparison, if none succeeded.
    """
    left: set[object] = set()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)

    async def pause() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), interval_s)

    async with contextlib.AsyncExitStack() as stack:
        comparisons = _Comparisons(await _finder(admin, comparison, stack))
        reports = watched(comparisons.compare, SystemClock(), pause)
        stop_task = asyncio.ensure_future(stopped.wait())
        while not stopped.is_set():
            next_event = asyncio.ensure_future(anext(reports))
            await asyncio.wait({next_event, stop_task}, return_when=asyncio.FIRST_COMPLETED)
            if not next_event.done():
                next_event.cancel()
                break
            _report(next_event.result(), left)
    if comparisons.last is None and comparisons.failure is not None:
        raise comparisons.failure
    return bool(left)


@dataclass
class _Comparisons:
    """Compares repeatedly; if a comparison fails, prints that and repeats the last result."""

    find: Find
    last: Sequence[ResourceChange] | None = None  #: result of the last comparison that succeeded
    failure: Exception | None = None  #: error of the last comparison that failed

    async def compare(self) -> Sequence[ResourceChange]:
        try:
            self.last = await self.find()
        except (ConnectionError, KafkaError) as error:
            self.failure = error
            event = {"time": SystemClock().wall_ms(), "event": "failed", "message": str(error)}
            print(json.dumps(event, ensure_ascii=False), flush=True)
        return self.last or ()


def _report(drift: DriftEvent, left: set[object]) -> None:
    print(json.dumps(drift.as_json(), ensure_ascii=False), flush=True)
    (left.add if drift.has_come else left.discard)(drift.change.resource_key)


async def _finder(admin: Admin, comparison: Comparison, stack: contextlib.AsyncExitStack) -> Find:
    if comparison.request is not None:
        request = comparison.request
        return lambda: from_declared(admin, request)
    assert comparison.against is not None
    cluster = ClusterClient(
        comparison.against, client_id="barnabas-cli", login=current_login(), tls=current_tls()
    )
    other = Admin(await stack.enter_async_context(cluster))
    return lambda: from_other(admin, other, comparison.resource_filter)


def _row(change: ResourceChange) -> tuple[str, str, str, str]:
    return change.resource, change.key, format_value(change.after), format_value(change.before)
