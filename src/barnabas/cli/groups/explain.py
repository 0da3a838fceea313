"""`barnabas groups explain`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from barnabas.cli.groups.options import GroupId
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json
from barnabas.cli.support.times import format_timestamp
from barnabas.client.admin.extensions.rebalances import (
    GroupRebalances,
    MemberIdentity,
    RebalanceDescription,
    RebalanceEventDescription,
    format_partitions,
)
from barnabas.client.admin.groups import Groups
from barnabas.wire.errors import ErrorCode, KafkaError


@command(
    "explain",
    example="groups explain billing --last 3",
    apis=("FindCoordinator", "DescribeRebalances"),
    needs=("describe group",),
)
def explain_group(
    name: GroupId,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    last: Annotated[int, typer.Option("--last", min=1, max=100, help="Number of rebalances to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Explain why a group rebalanced: members that joined, left or timed out, durations and assignments."""
    try:
        group = with_cluster(bootstrap, lambda cluster: Groups(cluster).rebalances(name))
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        message = (
            f"the coordinator of group '{name}' does not keep a history of rebalances: only Barnabas does"
        )
        raise CommandError(message, kind=error.code.name) from error
    shown = group.rebalances[:last]
    if as_json:
        print_json(group._asdict() | {"rebalances": [_as_json(rebalance) for rebalance in shown]})
    else:
        print("\n".join(_lines(group, shown)))


def _lines(group: GroupRebalances, shown: Sequence[RebalanceDescription]) -> Iterator[str]:
    yield f"Group {group.group_id}: {group.type} protocol, {group.state}"
    if not shown:
        yield "The coordinator has seen no rebalance of the group since it became the coordinator."
    for rebalance in shown:
        yield ""
        yield _headline(rebalance)
        for event in rebalance.events:
            yield f"  +{event.timestamp_ms - rebalance.started_ms} ms  {_event_text(event)}"
        if rebalance.events_count > len(rebalance.events):
            yield f"  and {rebalance.events_count - len(rebalance.events)} more events"
        for member, topics in rebalance.assignments.items():
            yield f"  assigned to {_member_text(member)}: {format_partitions(topics) or 'nothing'}"
        if rebalance.members_count > len(rebalance.assignments):
            yield f"  assignments of {rebalance.members_count - len(rebalance.assignments)} members are not known"


def _headline(rebalance: RebalanceDescription) -> str:
    duration_ms = rebalance.duration_ms
    took = "" if duration_ms is None else f" after {duration_ms} ms"
    unit = "generation" if rebalance.group_type == "classic" else "epoch"
    epoch = "" if rebalance.epoch < 0 else f", {unit} {rebalance.epoch}"
    return f"{format_timestamp(rebalance.started_ms)}  {rebalance.status}{took}{epoch}"


def _event_text(event: RebalanceEventDescription) -> str:
    text = f"{_member_text(event.member)} {event.text}" if event.member.member_id else event.text
    return f"{text}: {event.reason}" if event.reason else text


def _member_text(member: MemberIdentity) -> str:
    return f"{member.label} ({member.client_id} at {member.client_host.removeprefix('/')})"


def _as_json(rebalance: RebalanceDescription) -> dict[str, Any]:
    events = [
        {
            "timestamp_ms": event.timestamp_ms,
            "kind": event.kind,
            "reason": event.reason,
            **event.member._asdict(),
        }
        for event in rebalance.events
    ]
    assignments = [
        {**member._asdict(), "topics": {topic: list(indexes) for topic, indexes in topics.items()}}
        for member, topics in rebalance.assignments.items()
    ]
    return rebalance._asdict() | {
        "duration_ms": rebalance.duration_ms,
        "events": events,
        "assignments": assignments,
    }
