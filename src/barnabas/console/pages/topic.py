"""One topic: its partitions; add partitions; delete it."""

import asyncio
from typing import Any

from starlette.responses import Response

from barnabas.client.admin.admin import raise_errors
from barnabas.console.page import Route
from barnabas.console.pages.audit import history_path
from barnabas.console.paging import ListQuery, paged
from barnabas.console.problems import sentence
from barnabas.console.topic_view import TopicView, find_topic, reaches, sizes
from barnabas.console.trash_rule import trash_rule
from barnabas.console.view import View, segment
from barnabas.console.wait_visible import wait_until_applied, wait_until_visible
from barnabas.declared.state import ClusterState, TopicState
from barnabas.wire.errors import KafkaError

_PARTITIONS_MAX = 100_000


async def topic_of(view: View) -> TopicView:
    """The topic that the address names.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED.
    """
    return await find_topic(view.admin, view.path("name"))


def topic_path(topic: TopicView) -> str:
    """Return the address of a topic's page."""
    return f"/topics/{segment(topic.name)}"


async def frame(view: View, topic: TopicView) -> dict[str, Any]:
    """The head of every page about a topic: tabs and buttons."""
    path = topic_path(topic)
    tabs = [
        ("Partitions", path),
        ("Messages", f"{path}/messages"),
        ("Configuration", f"{path}/configs"),
        ("Groups", f"{path}/groups"),
    ]
    if await view.may("DESCRIBE"):
        tabs += [
            ("ACLs", f"/acls?topic={segment(topic.name)}"),
            ("History", history_path(f"topic/{topic.name}")),
        ]
    return {
        "topic": topic,
        "topic_path": path,
        "tabs": tabs,
        "may_grow": view.offers("ALTER", topic.operations),
        "may_delete": view.offers("DELETE", topic.operations),
        "may_produce": view.offers("WRITE", topic.operations),
    }


async def show(view: View) -> Response:
    """Show partitions with leaders, replicas, offsets and sizes."""
    topic = await topic_of(view)
    head = await frame(view, topic)
    query = ListQuery.of(head["topic_path"], view.query, "partition")
    partitions = paged(
        topic.partitions, query, {"partition": lambda each: each.partition}, lambda each, text: True
    )
    shown = {each.partition for each in partitions.rows}
    topic_partitions = [tp for tp in topic.led if tp.partition in shown]
    found, bytes_of = await asyncio.gather(reaches(view.admin, topic_partitions), sizes(view.admin, topic))
    reach = {tp.partition: each for tp, each in found.items()}
    return await view.page(
        "topic.html", **head, partitions=partitions, reach=reach, sizes=bytes_of, here=head["topic_path"]
    )


async def ask_growth(view: View) -> Response:
    """Show the form to add partitions."""
    topic = await topic_of(view)
    return await view.page(
        "topic_grow.html", **await frame(view, topic), errors={}, total=len(topic.partitions) + 1
    )


async def grow(view: View) -> Response:
    topic, form = await topic_of(view), await view.form()
    have = len(topic.partitions)
    form.needed("total")
    total = form.whole("total", minimum=1, maximum=_PARTITIONS_MAX)
    if not form.flag("understood"):
        form.refuse("understood", "Tick this to continue.")
    if total is not None and total <= have:
        form.refuse("total", f"The topic has {have} partitions; enter a greater number.")
    if total is not None and not form.errors:
        outcome = await view.admin.create_partitions({topic.name: total})
        error = outcome[topic.name]
        if error is None:
            await wait_until_applied(view.admin, ClusterState({topic.name: TopicState(total)}))
            view.access.topics.clear()
            notice = f"{topic.name} has {total} partitions now, {total - have} of them new."
            return view.redirect_with_notice(topic_path(topic), notice)
        form.refuse("total", sentence(error))
    head = await frame(view, topic)
    return await view.page(
        "topic_grow.html", status=400, **head, errors=form.errors, total=form.text("total")
    )


async def ask_deletion(view: View) -> Response:
    """Show the form to delete the topic, which requires typing its name."""
    return await _deletion_page(view, await topic_of(view), {})


async def _deletion_page(view: View, topic: TopicView, errors: dict[str, str]) -> Response:
    return await view.page(
        "topic_delete.html",
        status=400 if errors else 200,
        **await frame(view, topic),
        rule=await trash_rule(view),
        errors=errors,
    )


async def delete(view: View) -> Response:
    topic, form = await topic_of(view), await view.form()
    if form.text("typed") != topic.name:
        form.refuse("typed", f"Type the topic's name, {topic.name}, to delete it.")
    else:
        try:
            raise_errors((await view.admin.delete_topics([topic.name])).values())
        except KafkaError as error:
            form.refuse("typed", sentence(error))
    if form.errors:
        return await _deletion_page(view, topic, form.errors)
    await wait_until_visible(
        view.admin, ClusterState({topic.name: TopicState()}), lambda live: topic.name not in live.topics
    )
    view.access.topics.clear()
    way_back = " It can be undeleted under “Deleted topics”." if (await trash_rule(view)).keeps else ""
    return view.redirect_with_notice("/topics", f"Topic {topic.name} is deleted.{way_back}")


ROUTES = (
    Route("/topics/{name}", show),
    Route("/topics/{name}/grow", ask_growth),
    Route("/topics/{name}/grow", grow, "POST"),
    Route("/topics/{name}/delete", ask_deletion),
    Route("/topics/{name}/delete", delete, "POST"),
)
