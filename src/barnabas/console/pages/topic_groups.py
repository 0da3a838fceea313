"""The groups that read a topic, with their lags in it."""

from collections.abc import Sequence
from typing import NamedTuple

from starlette.responses import Response

from barnabas.client.admin.group_messages import GroupListing
from barnabas.client.admin.groups import Groups
from barnabas.client.group_lags import GroupLags, LagTotal, lags_of, total_lag
from barnabas.console.page import Route
from barnabas.console.pages.topic import frame, topic_of
from barnabas.console.view import View
from barnabas.wire.errors import KafkaError

#: Groups whose offsets one page fetches at most; the protocol cannot list the groups of a topic.
_GROUPS_MAX = 200


class TopicGroup(NamedTuple):
    """A group, the number of the topic's partitions that it reads, and its lag in them."""

    group: GroupListing
    partitions_count: int
    lag: LagTotal


async def show(view: View) -> Response:
    """Show the groups with committed offsets for the topic, or with members that read it."""
    topic = await topic_of(view)
    head = await frame(view, topic)
    everything = await Groups(view.cluster).list()
    start = _number(view.query.get("start", ""), len(everything))
    asked = everything[start : start + _GROUPS_MAX]
    lags = await lags_of(view.cluster, [group.group_id for group in asked])
    return await view.page(
        "topic_groups.html",
        **head,
        here=f"{head['topic_path']}/groups",
        rows=readers(topic.name, asked, lags),
        refused_count=sum(isinstance(each, KafkaError) for each in lags.values()),
        first=start + 1,
        last=start + len(asked),
        groups_count=len(everything),
    )


def readers(topic: str, groups: Sequence[GroupListing], lags: GroupLags) -> list[TopicGroup]:
    """The groups that read the topic."""
    rows = []
    for group in groups:
        found = lags[group.group_id]
        partitions = (
            [] if isinstance(found, KafkaError) else [each for each in found if each.tp.topic == topic]
        )
        if partitions:
            rows.append(TopicGroup(group, len(partitions), total_lag(partitions)))
    return rows


def _number(text: str, maximum: int) -> int:
    return min(int(text), maximum) if text.isascii() and text.isdigit() and len(text) < 10 else 0


ROUTES = (Route("/topics/{name}/groups", show),)
