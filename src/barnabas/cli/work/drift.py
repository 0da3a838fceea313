"""What `barnabas drift` does."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.base.clock import SystemClock
from barnabas.cli.failures import wrong_use
from barnabas.cli.login import current_login
from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.plan import shown_value
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.declared.diff import ResourceChange
from barnabas.declared.drift import DriftEvent, Find, drift_json, from_declared, from_other, watched
from barnabas.declared.plan import PlanRequest
from barnabas.declared.state import Choice
from barnabas.wire.errors import KafkaError

COLUMNS = ("resource", "key", "declared", "found")


@dataclass(frozen=True)
class Compared:
    """What a cluster is compared with: a declared state, or another cluster."""

    wish: PlanRequest | None
    against: str | None
    choice: Choice

    def __post_init__(self) -> None:
        if (self.wish is None) == (self.against is None):
            raise wrong_use("a file or --against is needed, and not both", "barnabas drift cluster.yaml")


def drift(bootstrap: str, compared: Compared, *, as_json: bool) -> bool:
    """Print what differs; gives whether anything does."""

    async def work(admin: Admin) -> Sequence[ResourceChange]:
        async with contextlib.AsyncExitStack() as stack:
            return await (await _finder(admin, compared, stack))()

    found = with_admin(bootstrap, work)
    if as_json:
        print_json({"differences": [drift_json(each) for each in found]})
    elif found:
        print_table(COLUMNS, [_row(each) for each in found])
    else:
        print("No drift.")
    return bool(found)


def watch(bootstrap: str, compared: Compared, interval_s: float) -> bool:
    """Print a line of JSON for each difference that comes or goes; gives whether any is left.

    SIGINT and SIGTERM end it. A cluster that cannot be asked is told of, and asked again.

    :raises KafkaError: Why the last look failed, where none has succeeded.
    :raises ConnectionError: The same.
    """
    return with_admin(bootstrap, lambda admin: _watch(admin, compared, interval_s))


async def _watch(admin: Admin, compared: Compared, interval_s: float) -> bool:
    left: set[object] = set()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)

    async def pause() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), interval_s)

    async with contextlib.AsyncExitStack() as stack:
        looks = _Looks(await _finder(admin, compared, stack))
        reports = watched(looks.look, SystemClock(), pause)
        ending = asyncio.ensure_future(stopped.wait())
        while not stopped.is_set():
            next_one = asyncio.ensure_future(anext(reports))
            await asyncio.wait({next_one, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not next_one.done():
                next_one.cancel()
                break
            _report(next_one.result(), left)
    if looks.last is None and looks.failure is not None:
        raise looks.failure
    return bool(left)


@dataclass
class _Looks:
    """Says so when nothing could be found out, and that all is as it was."""

    find: Find
    last: Sequence[ResourceChange] | None = None  #: what the last look found that did not fail
    failure: Exception | None = None  #: why the last one failed that did

    async def look(self) -> Sequence[ResourceChange]:
        try:
            self.last = await self.find()
        except (ConnectionError, KafkaError) as error:
            self.failure = error
            told = {"time": SystemClock().wall_ms(), "event": "failed", "message": str(error)}
            print(json.dumps(told, ensure_ascii=False), flush=True)
        return self.last or ()


def _report(drift: DriftEvent, left: set[object]) -> None:
    print(json.dumps(drift.as_json(), ensure_ascii=False), flush=True)
    (left.add if drift.has_come else left.discard)(drift.change.place)


async def _finder(admin: Admin, compared: Compared, stack: contextlib.AsyncExitStack) -> Find:
    if compared.wish is not None:
        wish = compared.wish
        return lambda: from_declared(admin, wish)
    assert compared.against is not None
    cluster = ClusterClient(compared.against, client_id="barnabas-cli", login=current_login())
    other = Admin(await stack.enter_async_context(cluster))
    return lambda: from_other(admin, other, compared.choice)


def _row(change: ResourceChange) -> tuple[str, str, str, str]:
    return change.resource, change.key, shown_value(change.after), shown_value(change.before)
