"""Brokers: addresses, and configs with the source of each value; dynamic ones can be altered here."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from barnabas.base.resource_names import HIDDEN
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import ConfigEntry
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.console.forms import Form, is_node_id
from barnabas.console.page import MenuEntry, Route
from barnabas.console.paging import ListQuery, paged
from barnabas.console.problems import not_found, sentence
from barnabas.console.view import View
from barnabas.console.wait_visible import wait_until_applied
from barnabas.declared.state import BrokerState, ClusterState
from barnabas.wire.errors import KafkaError

DEFAULT = "default"
#: Sources of a broker's values in order of precedence, with their names on pages.
SOURCES: Mapping[ConfigSource, str] = {
    ConfigSource.DYNAMIC_BROKER_CONFIG: "set for this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "set for all brokers",
    ConfigSource.STATIC_BROKER_CONFIG: "static configuration",
    ConfigSource.DEFAULT_CONFIG: "default",
}
_OWN = {DEFAULT: ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG}


class ConfigRow(NamedTuple):
    """A config as displayed."""

    entry: ConfigEntry
    is_own: bool  #: set for this resource, so that it can be reset

    @property
    def value(self) -> str | None:
        """The value, unless it is secret."""
        return HIDDEN if self.entry.sensitive else self.entry.value

    @property
    def source(self) -> str:
        """The source in words."""
        return SOURCES.get(self.entry.source, self.entry.source.name.lower().replace("_", " "))


_COLUMNS = {
    "name": lambda row: row.entry.name,
    "source": lambda row: (
        list(SOURCES).index(row.entry.source) if row.entry.source in SOURCES else 9,
        row[0].name,
    ),
}


async def show_all(view: View) -> Response:
    return await view.page("brokers.html", cluster=await view.cluster_view())


def resource_of(name: str) -> Resource:
    """The broker of that name, or the default of all brokers.

    :raises PageError: When it is neither.
    """
    if name == DEFAULT:
        return Resource(ResourceKind.BROKER, EVERY_BROKER)
    if not is_node_id(name):
        raise not_found(f"'{name}' is not a broker id: use a number, or '{DEFAULT}' for all brokers.")
    return Resource(ResourceKind.BROKER, name)


async def show(view: View) -> Response:
    """Show the configs of a broker."""
    return await _page(view, {"key": view.query.get("key", "")}, {})


async def _rows(view: View, resource: Resource) -> list[ConfigRow]:
    if resource.name and int(resource.name) not in {
        node.node_id for node in (await view.cluster_view()).nodes
    }:
        raise not_found(f"There is no broker with id {resource.name}.")
    outcome = (await view.admin.describe_configs([resource]))[resource]
    if isinstance(outcome, KafkaError):
        raise outcome
    own = _OWN.get(resource.name or DEFAULT, ConfigSource.DYNAMIC_BROKER_CONFIG)
    return [ConfigRow(entry, entry.source is own) for entry in outcome]


async def _page(
    view: View,
    values: dict[str, str],
    errors: dict[str, str],
    preview: Sequence[tuple[str, str | None, str | None]] = (),
) -> Response:
    name = view.path("broker")
    rows = await _rows(view, resource_of(name))
    source = view.query.get("source", "")
    found = [row for row in rows if source in ("", row.entry.source.name)]
    query = ListQuery.of(f"/brokers/{name}", view.query, "name", extra=("source",))
    chosen = {row.entry.name: row for row in rows}.get(values.get("key", ""))
    context: dict[str, Any] = {
        "part": paged(found, query, _COLUMNS, _matches),
        "name": name,
        "source": source,
        "sources": {
            each: text for each, text in SOURCES.items() if any(row.entry.source is each for row in rows)
        },
        "keys": sorted(row.entry.name for row in rows if not row.entry.read_only),
        "may_alter": view.offers("ALTER_CONFIGS", (await view.cluster_view()).operations),
    }
    if view.is_partial and not errors:
        return await view.piece("broker_configs.html", **context)
    if chosen is not None and "value" not in values and not chosen.entry.sensitive:
        values = {**values, "value": chosen.entry.value or ""}
    status = 400 if errors else 200
    return await view.page(
        "broker.html", status=status, **context, values=values, errors=errors, preview=preview
    )


def _matches(row: ConfigRow, text: str) -> bool:
    return text in row.entry.name or text in (row.value or "").lower()


async def alter(view: View) -> Response:
    """Preview a change, validated by the broker; make it once confirmed."""
    name, form = view.path("broker"), await view.form()
    resource, edit = resource_of(name), edit_of(form)
    values = {key: form.raw(key) for key in ("key", "value", "way")}
    if edit is None:
        return await _page(view, values, form.errors)
    confirmed = form.flag("confirmed")
    try:
        raise_errors(
            (await view.admin.alter_configs({resource: [edit]}, validate_only=not confirmed)).values()
        )
    except KafkaError as error:
        form.refuse("value" if edit.operation is OpType.SET else "key", sentence(error))
        return await _page(view, values, form.errors)
    if confirmed:
        await wait_until_applied(
            view.admin, ClusterState(brokers={resource.name: BrokerState({edit.key: edit.value})})
        )
        target = "all brokers" if name == DEFAULT else f"broker {name}"
        done = "set" if edit.operation is OpType.SET else "reset to the default"
        return view.redirect_with_notice(f"/brokers/{name}", f"{edit.key} is {done} for {target}.")
    row = next((row for row in await _rows(view, resource) if row.entry.name == edit.key), None)
    return await _page(view, values, {}, [(edit.key, *changed(row, edit))])


def changed(row: ConfigRow | None, edit: AlterConfigOp) -> tuple[str | None, str | None]:
    """The value before and after; after a reset, the inherited one."""
    before = None if row is None else row.value
    if row is not None and row.entry.sensitive:
        return before, HIDDEN
    if edit.operation is OpType.SET:
        return before, edit.value
    behind = [each for each in row.entry.synonyms if each.source is not row.entry.source] if row else []
    return before, behind[0].value if behind else None


def edit_of(form: Form) -> AlterConfigOp | None:
    """The change of the form; None with the reason among its errors."""
    key = form.needed("key")
    if form.errors:
        return None
    if form.one_of("way", ("set", "delete")) == "delete":
        return AlterConfigOp(key, OpType.DELETE)
    return AlterConfigOp(key, OpType.SET, form.text("value"))


MENU = MenuEntry("Cluster", "Brokers", "/brokers")
ROUTES = (
    Route("/brokers", show_all),
    Route("/brokers/{broker}", show),
    Route("/brokers/{broker}", alter, "POST"),
)
