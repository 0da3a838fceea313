"""The configs of a topic with source and documentation of each value; changes are previewed."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import ConfigEntry
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.console.config_preview import OWN, SOURCES, changes_of, is_stale
from barnabas.console.page import Route
from barnabas.console.pages.topic import frame, topic_of, topic_path
from barnabas.console.problems import sentence
from barnabas.console.topic_view import TopicView
from barnabas.console.view import View
from barnabas.console.wait_visible import wait_until_applied
from barnabas.declared.state import ClusterState, TopicState
from barnabas.wire.errors import KafkaError


async def show(view: View) -> Response:
    """Show all configs of the topic, its own first."""
    topic = await topic_of(view)
    entries = sorted(await _entries(view, topic), key=lambda entry: (entry.source is not OWN, entry.name))
    return await view.page("topic_configs.html", **await _head(view, topic), entries=entries)


async def ask(view: View) -> Response:
    """Show the form for the configs that the address names."""
    topic = await topic_of(view)
    keys = view.request.query_params.getlist("key")
    chosen = [entry for entry in await _entries(view, topic) if entry.name in keys]
    if not chosen:
        return view.redirect_with_notice(
            f"{topic_path(topic)}/configs", "Select the configs to change.", "warn"
        )
    values = {entry.name: entry.value or "" for entry in chosen}
    return await _form(view, topic, chosen, values, set())


async def alter(view: View) -> Response:
    """Preview a change, validated by the broker; make it once confirmed."""
    topic, form = await topic_of(view), await view.form()
    entries = await _entries(view, topic)
    changes = changes_of(form, entries)
    resource = Resource(ResourceKind.TOPIC, topic.name)
    chosen = [entry for entry in entries if entry.name in form.all("key")]
    values = {entry.name: form.text(f"value:{entry.name}") for entry in chosen}
    resets = {entry.name for entry in chosen if form.flag(f"reset:{entry.name}")}
    if not changes:
        form.refuse("", "Nothing would change: these are the current values.")
        return await _form(view, topic, chosen, values, resets, form.errors)
    is_agreed = form.flag("confirmed") and not is_stale(form, changes)
    edits = {resource: [change.edit for change in changes]}
    try:
        raise_errors((await view.admin.alter_configs(edits, validate_only=not is_agreed)).values())
    except KafkaError as error:
        _set_errors(form.errors, error, [change.edit.key for change in changes])
        return await _form(view, topic, chosen, values, resets, form.errors)
    if is_agreed:
        values_now = {change.edit.key: change.edit.value for change in changes}
        await wait_until_applied(view.admin, ClusterState({topic.name: TopicState(configs=values_now)}))
        keys = ", ".join(change.edit.key for change in changes)
        return view.redirect_with_notice(f"{topic_path(topic)}/configs", f"Changed: {keys}.")
    return await view.page(
        "topic_configs_preview.html",
        **await _head(view, topic),
        changes=changes,
        differences=[(change.edit.key, change.before, change.after) for change in changes],
        values=values,
        resets=resets,
        is_stale=form.flag("confirmed"),
    )


async def _entries(view: View, topic: TopicView) -> list[ConfigEntry]:
    resource = Resource(ResourceKind.TOPIC, topic.name)
    outcome = (await view.admin.describe_configs([resource], documentation=True))[resource]
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


async def _head(view: View, topic: TopicView) -> dict[str, Any]:
    head = await frame(view, topic)
    may_alter = view.offers("ALTER_CONFIGS", topic.operations)
    return {
        **head,
        "here": f"{head['topic_path']}/configs",
        "may_alter": may_alter,
        "sources": SOURCES,
        "own": OWN,
    }


async def _form(
    view: View,
    topic: TopicView,
    chosen: Sequence[ConfigEntry],
    values: dict[str, str],
    resets: set[str],
    errors: dict[str, str] | None = None,
) -> Response:
    return await view.page(
        "topic_configs_alter.html",
        status=400 if errors else 200,
        **await _head(view, topic),
        chosen=chosen,
        values=values,
        resets=resets,
        errors=errors or {},
    )


def _set_errors(errors: dict[str, str], error: KafkaError, keys: Sequence[str]) -> None:
    """Put an error beside the field that it names, else at the top."""
    named = [key for key in keys if key in error.message]
    errors[f"value:{named[0]}" if len(named) == 1 else ""] = sentence(error)


ROUTES = (
    Route("/topics/{name}/configs", show),
    Route("/topics/{name}/configs/alter", ask),
    Route("/topics/{name}/configs/alter", alter, "POST"),
)
