"""Quotas of users, client ids and addresses: list, set and remove them."""

import json
from typing import NamedTuple

from starlette.responses import Response

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.quotas import ClientQuotaAlteration, Entity
from barnabas.console import formatting
from barnabas.console.forms import Form, encodable
from barnabas.console.page import MenuEntry, Route
from barnabas.console.paging import ListQuery, paged
from barnabas.console.problems import sentence, wrong_form
from barnabas.console.view import View
from barnabas.console.wait_visible import wait_until_applied
from barnabas.declared.state import ClusterState
from barnabas.wire.errors import KafkaError

#: Quota keys by entity type, with their units.
OF_CLIENTS = {
    "producer_byte_rate": "bytes produced per second",
    "consumer_byte_rate": "bytes fetched per second",
    "request_percentage": "percent of a request thread's time",
    "controller_mutation_rate": "partitions created or deleted per second",
}
OF_ADDRESSES = {"connection_creation_rate": "connections opened per second"}
KEYS = {**OF_CLIENTS, **OF_ADDRESSES}
_BYTES = frozenset({"producer_byte_rate", "consumer_byte_rate"})
_DEFAULT = "*"


class QuotaRow(NamedTuple):
    """One quota of an entity."""

    entity: Entity
    key: str
    value: float

    @property
    def entity_name(self) -> str:
        """The entity in words: `user carol, every client-id`."""
        return ", ".join(f"every {kind}" if name is None else f"{kind} {name}" for kind, name in self.entity)

    @property
    def shown(self) -> str:
        """The value with its unit."""
        if self.key in _BYTES:
            return f"{formatting.size(self.value)}/s"
        return f"{self.value:.15g}{' %' if self.key == 'request_percentage' else '/s'}"

    @property
    def written(self) -> str:
        """The quota as a form field."""
        return json.dumps([[list(part) for part in self.entity], self.key])


_COLUMNS = {"entity": lambda row: (row.entity_name, row.key), "quota": lambda row: (row.key, row.entity_name)}


async def show(view: View) -> Response:
    return await _page(view, {}, {})


async def _page(view: View, values: dict[str, str], errors: dict[str, str]) -> Response:
    found = await view.admin.describe_client_quotas()
    rows = [QuotaRow(entity, key, value) for entity, limits in found.items() for key, value in limits.items()]
    query = ListQuery.of("/quotas", view.query, "entity")
    context = {
        "part": paged(
            rows, query, _COLUMNS, lambda row, text: text in f"{row.entity_name} {row.key}".lower()
        ),
        "keys": KEYS,
        "may_alter": view.offers("ALTER_CONFIGS", (await view.cluster_view()).operations),
    }
    if view.is_partial and not errors:
        return await view.piece("quotas_list.html", **context)
    status = 400 if errors else 200
    return await view.page("quotas.html", status=status, **context, values=values, errors=errors)


async def alter(view: View) -> Response:
    """Set one quota."""
    form = await view.form()
    alteration = alteration_of(form)
    if alteration is not None and not form.errors:
        try:
            raise_errors((await view.admin.alter_client_quotas([alteration])).values())
        except KafkaError as error:
            form.refuse("value", sentence(error))
        else:
            await wait_until_applied(view.admin, ClusterState(quotas={alteration.entity: alteration.values}))
            [(key, value)] = alteration.values.items()
            row = QuotaRow(alteration.entity, key, value or 0.0)
            return view.redirect_with_notice("/quotas", f"{row.entity_name}: {key} is set to {row.shown}.")
    names = ("user", "client-id", "ip", "key", "value")
    return await _page(view, {name: form.text(name) for name in names}, form.errors)


def alteration_of(form: Form) -> ClientQuotaAlteration | None:
    """The alteration of the form; None with the reasons among its errors."""
    key = form.one_of("key", tuple(KEYS))
    kinds = ("ip",) if key in OF_ADDRESSES else ("user", "client-id")
    given = {kind: form.text(kind) for kind in ("user", "client-id", "ip") if form.text(kind)}
    for kind in given:
        if kind not in kinds:
            form.refuse(kind, f"{key} is a quota of {' and '.join(kinds)} only.")
    if not given:
        form.refuse(kinds[0], "Name a user, a client id or an address.")
    try:
        value = float(form.needed("value") or 0)
        if not 0 < value < float("inf"):
            form.refuse("value", "A quota must be greater than 0; to remove it, use Remove.")
    except ValueError:
        form.refuse("value", f"'{form.text('value')[:40]}' is not a number, such as 1048576.")
        return None
    entity = tuple(
        (kind, None if given[kind] == _DEFAULT else given[kind]) for kind in kinds if kind in given
    )
    return ClientQuotaAlteration(tuple(sorted(entity, key=lambda part: part[0])), {key: value})


async def remove(view: View) -> Response:
    entity, key = limit_in((await view.form()).text("limit"))
    raise_errors(
        (await view.admin.alter_client_quotas([ClientQuotaAlteration(entity, {key: None})])).values()
    )
    await wait_until_applied(view.admin, ClusterState(quotas={entity: {key: None}}))
    return view.redirect_with_notice("/quotas", f"{QuotaRow(entity, key, 0).entity_name}: {key} is removed.")


def limit_in(text: str) -> tuple[Entity, str]:
    """Parse the result of `QuotaRow.written`.

    :raises PageError: When it is malformed.
    """
    try:
        entity, key = json.loads(text)
        return tuple((str(kind), None if name is None else encodable(name)) for kind, name in entity), str(
            key
        )
    except (ValueError, TypeError, RecursionError):
        raise wrong_form("This is not one of the listed quotas.") from None


MENU = MenuEntry("Security", "Quotas", "/quotas", "DESCRIBE_CONFIGS")
ROUTES = (
    Route("/quotas", show),
    Route("/quotas", alter, "POST"),
    Route("/quotas/remove", remove, "POST"),
)
