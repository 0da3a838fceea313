"""Rebalances of a group as lines of a scenario."""

from collections.abc import Callable, Iterable, Iterator

from barnabas.groups.rebalance_history import AssignedTopics, Rebalance, RebalanceEvent


def rebalance_lines(rebalances: Iterable[Rebalance], name: Callable[[str], str]) -> list[str]:
    """Return a line for each rebalance, and an indented one for each of its events and assignments.

    :param name: Returns the name of a member id in the scenario.
    """
    return [line for rebalance in rebalances for line in _lines(rebalance, name)]


def _lines(rebalance: Rebalance, name: Callable[[str], str]) -> Iterator[str]:
    completed_ms = rebalance.completed_ms
    took = "" if completed_ms is None else f" after {completed_ms - rebalance.started_ms} ms"
    yield f"{rebalance.group_type} rebalance to epoch {rebalance.epoch}: {rebalance.status}{took}"
    for event in rebalance.events:
        yield f"  +{event.timestamp_ms - rebalance.started_ms} ms: {_event(event, name)}"
    for member, topics in rebalance.assignments.items():
        yield f"  {name(member.member_id)} is assigned {_partitions(topics)}"


def _event(event: RebalanceEvent, name: Callable[[str], str]) -> str:
    words = [name(event.member.member_id), event.kind.value]
    return " ".join(word for word in words if word) + (f", {event.reason}" if event.reason else "")


def _partitions(topics: AssignedTopics) -> str:
    return " ".join(f"{topic}-{index}" for topic, indexes in topics.items() for index in indexes) or "nothing"
