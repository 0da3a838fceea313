"""`barnabas audit`, `barnabas history`, `barnabas rollback`: changes of the cluster, earlier values, and going back."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin, with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import NOT_FOUND, CommandError, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import Row, notice, print_json, print_table
from barnabas.cli.support.times import format_timestamp, parse_time_ms
from barnabas.client.admin.offsets import EARLIEST, OffsetSpec
from barnabas.client.consumer.consumer import Consumer, Start
from barnabas.client.core.cluster import ClusterClient
from barnabas.metadata.audit.event_history import compared, state_at
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.wire.errors import ErrorCode, KafkaError

_COLUMNS = ("revision", "time", "principal", "api", "outcome", "resource", "key", "before", "after")
_NO_AUDIT = (
    "no audit events yet: set barnabas.audit.enable=true; the audit topic is created with the next change"
)


@dataclass(frozen=True)
class AuditFilter:
    """Filter of audit events; None matches any. `since_ms` is in ms since the epoch."""

    resource: str | None = None
    principal: str | None = None
    api: str | None = None
    outcome: AuditOutcome | None = None
    since_ms: int | None = None

    def matches(self, event: AuditEvent) -> bool:
        return (
            (self.resource is None or _matches_name(event.resource, self.resource))
            and self.principal in (None, event.principal)
            and self.api in (None, event.api)
            and self.outcome in (None, event.outcome)
            and (self.since_ms is None or event.time >= self.since_ms)
        )


def _matches_name(resource: str, pattern: str) -> bool:
    return resource == pattern or (pattern.endswith("*") and resource.startswith(pattern[:-1]))


@command(
    "audit",
    example="audit --resource 'topic/ord*' --since 1h --follow",
    apis=("Fetch",),
    needs=("read topic",),
)
def audit(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    resource: Annotated[
        str | None,
        typer.Option(
            "--resource",
            "-r",
            metavar="KIND/NAME",
            help="Only changes of this resource, such as topic/orders; the name may end in *.",
            autocompletion=candidates.resources,
        ),
    ] = None,
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
    event_filter = AuditFilter(resource, principal, api, _parse_outcome(outcome), _parse_since(since))
    if follow:
        with_cluster(bootstrap, lambda cluster: _follow(cluster, event_filter, as_json=as_json))
        return
    events = [event for event in _read(bootstrap, event_filter.since_ms) if event_filter.matches(event)]
    if as_json:
        for event in events:
            print_json(asdict(event))
        return
    print_table(_COLUMNS, [_row(event) for event in events])
    if not events:
        notice("no matching audit events")


def _parse_outcome(text: str | None) -> AuditOutcome | None:
    """Parse the value of `--outcome`.

    :raises CommandError: If the outcome does not exist.
    """
    try:
        return None if text is None else AuditOutcome(text)
    except ValueError:
        message = f"--outcome {text}: must be one of {', '.join(AuditOutcome)}"
        raise wrong_use(message) from None


def _parse_since(since: str | None) -> int | None:
    """Parse the value of `--since` to ms since the epoch.

    :raises CommandError: If the time is not valid.
    """
    return None if since is None else parse_time_ms(since, SystemClock().wall_ms())


@command("history", example="history topic/orders --since 41 --at 57", apis=("Fetch",), needs=("read topic",))
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
    events = _read(bootstrap)
    changes = [event for event in events if event.resource == resource]
    if not changes:
        message = f"no audit events of {resource}"
        raise CommandError(
            message,
            hint="a resource is KIND/NAME, such as topic/orders; 'barnabas audit' shows all changes",
            exit_code=NOT_FOUND,
        )
    if since is not None:
        until = events[-1].revision if at is None else at
        _print_differences(changes, resource, since, until, as_json=as_json)
    elif at is not None:
        _print_state(state_at(changes, resource, at), as_json=as_json)
    elif as_json:
        print_json([asdict(event) for event in changes])
    else:
        print_table(_COLUMNS, [_row(event) for event in changes])


def _print_state(state: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(state)
    else:
        print_table(("key", "value"), [(key, _format_value(state[key])) for key in sorted(state)])


def _print_differences(
    events: Sequence[AuditEvent], resource: str, since: int, until: int, *, as_json: bool
) -> None:
    differences = compared(state_at(events, resource, since), state_at(events, resource, until))
    if as_json:
        print_json([difference._asdict() for difference in differences])
        return
    columns = ("key", f"at {since}", f"at {until}")
    print_table(
        columns, [(key, _format_value(before), _format_value(after)) for key, before, after in differences]
    )


@command(
    "rollback",
    example="rollback topic/orders --to 41 --dry-run",
    apis=("RollbackResource",),
    needs=("alter-configs topic",),
)
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
    result = with_admin(bootstrap, lambda admin: admin.roll_back(resource, to, validate_only=dry_run))
    if as_json:
        keys = [change._asdict() for change in result.keys]
        state = {"resource": resource, "to": to, "dry_run": dry_run}
        print_json({**state, "keys": keys, "notes": result.notes})
        return
    if result.keys:
        columns = ("key", "before", "after")
        print_table(
            columns,
            [(key, _format_value(before), _format_value(after)) for key, before, after in result.keys],
        )
    else:
        print(f"{resource} is already in the state of revision {to}")
    for note in result.notes:
        print(f"note: {note}")


def _format_value(value: Any) -> str:
    """Format a value for a table: text as it is, None as a dash, else as JSON."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row(event: AuditEvent) -> Row:
    time = format_timestamp(event.time)
    principal = f"{event.principal} at {event.client_host}"
    if event.outcome is AuditOutcome.CHANGED:
        details = (event.key or "", _format_value(event.before), _format_value(event.after))
    else:
        details = (event.error or "", event.message or "", "")
    return event.revision, time, principal, event.api, event.outcome, event.resource, *details


def _read(bootstrap: str, since_ms: int | None = None) -> list[AuditEvent]:
    """Return all events from a time on, in order; empty if the audit topic does not exist."""

    async def read(cluster: ClusterClient) -> list[AuditEvent]:
        return [event async for event in _events(cluster, since_ms, stop_at_end=True)]

    try:
        return with_cluster(bootstrap, read)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        notice(_NO_AUDIT)
        return []


async def _follow(cluster: ClusterClient, event_filter: AuditFilter, *, as_json: bool) -> None:
    await _wait_for_topic(cluster)
    async for event in _events(cluster, event_filter.since_ms, stop_at_end=False):
        if event_filter.matches(event):
            line = json.dumps(asdict(event), ensure_ascii=False) if as_json else _line(event)
            print(line, flush=True)


async def _wait_for_topic(cluster: ClusterClient) -> None:
    """Wait until the audit topic exists."""
    attempts = 0
    while True:
        try:
            await cluster.topic(AUDIT_TOPIC)
            return
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        if attempts == 0:
            notice(f"{_NO_AUDIT}; waiting for it")
        attempts += 1
        await cluster.retry.pause(attempts)


def _line(event: AuditEvent) -> str:
    return "  ".join(str(cell) for cell in _row(event) if cell != "")


async def _events(
    cluster: ClusterClient, since_ms: int | None, *, stop_at_end: bool
) -> AsyncIterator[AuditEvent]:
    start: Start = EARLIEST if since_ms is None else OffsetSpec.at(since_ms)
    async with Consumer(cluster) as consumer:
        await consumer.assign({TopicPartition(AUDIT_TOPIC, 0): start}, stop_at_end=stop_at_end)
        while not consumer.finished:
            for event in _parsed(record.value for record in await consumer.poll()):
                yield event


def _parsed(values: Iterator[bytes | None]) -> Iterator[AuditEvent]:
    return (AuditEvent.from_json(value) for value in values if value is not None)
