"""What `barnabas audit`, `barnabas history` and `barnabas rollback` do."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import NOT_FOUND, CommandError, wrong_use
from barnabas.cli.output import Row, notice, print_json, print_table
from barnabas.cli.work.calls import with_admin, with_cluster
from barnabas.cli.work.times import parse_time_ms
from barnabas.client.admin.offsets import EARLIEST, OffsetSpec
from barnabas.client.consumer.consumer import Consumer, Start
from barnabas.client.core.cluster import ClusterClient
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.metadata.audit.history import compared, state_at
from barnabas.metadata.topics import AUDIT_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError

COLUMNS = ("revision", "time", "who", "by", "outcome", "resource", "key", "before", "after")

_NONE_YET = "there is no audit: it begins with the first change under barnabas.audit.enable=true"


@dataclass(frozen=True)
class AuditFilter:
    """Which events to show; None stands for any. `since_ms` counts from the epoch."""

    resource: str | None = None
    principal: str | None = None
    api: str | None = None
    outcome: AuditOutcome | None = None
    since_ms: int | None = None

    def matches(self, event: AuditEvent) -> bool:
        """Whether an event is one of them."""
        return (
            (self.resource is None or _is_named(event.resource, self.resource))
            and self.principal in (None, event.principal)
            and self.api in (None, event.api)
            and self.outcome in (None, event.outcome)
            and (self.since_ms is None or event.time >= self.since_ms)
        )


def _is_named(resource: str, pattern: str) -> bool:
    return resource == pattern or (pattern.endswith("*") and resource.startswith(pattern[:-1]))


def outcome_of(text: str | None) -> AuditOutcome | None:
    """The outcome of that name.

    :raises CommandError: When there is none.
    """
    try:
        return None if text is None else AuditOutcome(text)
    except ValueError:
        message = f"--outcome {text} is none"
        raise wrong_use(message, ", ".join(AuditOutcome)) from None


def time_of(since: str | None) -> int | None:
    """A time in ms since the epoch.

    :raises CommandError: When it is none.
    """
    return None if since is None else parse_time_ms(since, SystemClock().wall_ms())


def show(bootstrap: str, wanted: AuditFilter, *, follow: bool, as_json: bool) -> None:
    """Print the events that there are; with `follow` those that come as well, one a line."""
    if follow:
        with_cluster(bootstrap, lambda cluster: _follow(cluster, wanted, as_json=as_json))
        return
    found = [event for event in _read(bootstrap, wanted.since_ms) if wanted.matches(event)]
    if as_json:
        for event in found:
            print_json(asdict(event))
        return
    print_table(COLUMNS, [_row(event) for event in found])
    if not found:
        notice("nothing of that kind has been changed")


def history(bootstrap: str, resource: str, at: int | None, since: int | None, *, as_json: bool) -> None:
    """Print all changes of a resource, its state at a revision, or what differs between two.

    :raises CommandError: When the audit knows nothing of it.
    """
    events = _read(bootstrap)
    found = [each for each in events if each.resource == resource]
    if not found:
        message = f"the audit knows nothing of {resource}"
        raise CommandError(message, hint="'barnabas audit' shows what has changed", exit_code=NOT_FOUND)
    if since is not None:
        until = events[-1].revision if at is None else at
        _print_difference(found, resource, since, until, as_json=as_json)
    elif at is not None:
        _print_state(state_at(found, resource, at), as_json=as_json)
    elif as_json:
        print_json([asdict(event) for event in found])
    else:
        print_table(COLUMNS, [_row(event) for event in found])


def roll_back(bootstrap: str, resource: str, revision: int, *, dry_run: bool, as_json: bool) -> None:
    """Give a resource what it had at a revision, or with `dry_run` show what that would change."""
    outcome = with_admin(bootstrap, lambda admin: admin.roll_back(resource, revision, validate_only=dry_run))
    if as_json:
        keys = [each._asdict() for each in outcome.keys]
        state = {"resource": resource, "to": revision, "dry_run": dry_run}
        print_json({**state, "keys": keys, "notes": outcome.notes})
        return
    if outcome.keys:
        columns = ("key", "now" if dry_run else "before", "then" if dry_run else "after")
        print_table(columns, [(key, shown(before), shown(after)) for key, before, after in outcome.keys])
    else:
        print(f"{resource} is as it was at revision {revision}")
    for note in outcome.notes:
        print(f"note: {note}")


def _print_state(state: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(state)
    else:
        print_table(("key", "value"), [(key, shown(state[key])) for key in sorted(state)])


def _print_difference(
    events: Sequence[AuditEvent], resource: str, since: int, until: int, *, as_json: bool
) -> None:
    differences = compared(state_at(events, resource, since), state_at(events, resource, until))
    if as_json:
        print_json([each._asdict() for each in differences])
        return
    columns = ("key", f"at {since}", f"at {until}")
    print_table(columns, [(key, shown(before), shown(after)) for key, before, after in differences])


def shown(value: Any) -> str:
    """A value for people: text as it is, nothing as a dash."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row(event: AuditEvent) -> Row:
    moment = datetime.fromtimestamp(event.time / 1000).astimezone().isoformat(" ", "seconds")
    who = f"{event.principal} at {event.client_host}"
    if event.outcome is AuditOutcome.CHANGED:
        what = (event.key or "", shown(event.before), shown(event.after))
    else:
        what = (event.error or "", event.message or "", "")
    return event.revision, moment, who, event.api, event.outcome, event.resource, *what


def _read(bootstrap: str, since_ms: int | None = None) -> list[AuditEvent]:
    """All events from a time on, in order; none where there is no audit yet."""

    async def read(cluster: ClusterClient) -> list[AuditEvent]:
        return [event async for event in _events(cluster, since_ms, stop_at_end=True)]

    try:
        return with_cluster(bootstrap, read)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        notice(_NONE_YET)
        return []


async def _follow(cluster: ClusterClient, wanted: AuditFilter, *, as_json: bool) -> None:
    await _until_audited(cluster)
    async for event in _events(cluster, wanted.since_ms, stop_at_end=False):
        if wanted.matches(event):
            line = json.dumps(asdict(event), ensure_ascii=False) if as_json else _line(event)
            print(line, flush=True)


async def _until_audited(cluster: ClusterClient) -> None:
    """Wait for the first event that makes the topic."""
    attempts = 0
    while True:
        try:
            await cluster.topic(AUDIT_TOPIC)
            return
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        if attempts == 0:
            notice(f"{_NONE_YET}; waiting for it")
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
