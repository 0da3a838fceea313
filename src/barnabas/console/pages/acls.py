"""ACLs: list, create and delete them."""

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

from starlette.responses import Response

from barnabas.client.admin.admin import raise_errors
from barnabas.console.formatting import plural, word
from barnabas.console.forms import Form, too_long
from barnabas.console.page import MenuEntry, Route
from barnabas.console.paging import ListQuery, paged
from barnabas.console.problems import not_found, sentence, wrong_form
from barnabas.console.view import View
from barnabas.console.wait_visible import wait_until_applied, wait_until_visible
from barnabas.declared.state import ClusterState
from barnabas.wire.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    principal_of,
)
from barnabas.wire.errors import ErrorCode, KafkaError

WordT = TypeVar("WordT", bound=IntEnum)

_COLUMNS = {
    "principal": lambda acl: (acl.principal, acl.resource_type, acl.resource_name, acl.operation),
    "resource": lambda acl: (acl.resource_type, acl.resource_name, acl.principal, acl.operation),
    "operation": lambda acl: (acl.operation.name, acl.principal, acl.resource_name),
}
_SEPARATOR = "\t"


def member_of(kind: type[WordT], text: str) -> WordT:
    """The enum member that `word` displays so.

    :raises PageError: When there is none.
    """
    for member in kind:
        if member > 1 and word(member) == text and member is not PatternType.MATCH:
            return member
    raise wrong_form(f"'{text}' is not one of {', '.join(choices(kind))}.")


def choices(kind: type[IntEnum]) -> list[str]:
    """The values of an ACL, in words, without those that only filters have."""
    return [word(member) for member in kind if member > 1 and member is not PatternType.MATCH]


async def show(view: View) -> Response:
    """Show the ACLs, filtered; those that apply to a topic if the address names one."""
    return await _page(view, {}, {})


async def _page(view: View, values: dict[str, str], errors: dict[str, str]) -> Response:
    query = ListQuery.of("/acls", view.query, "principal", extra=("type", "permission", "topic"))
    kind, permission = view.query.get("type", ""), view.query.get("permission", "")
    topic = view.query.get("topic", "")
    if too_long(topic):
        raise not_found()
    applying = AclFilter(ResourceType.TOPIC, topic, PatternType.MATCH) if topic else None
    secured, everything = True, list[AclBinding]()
    try:
        everything = await view.admin.describe_acls(applying)
    except KafkaError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            raise
        secured = False
    found = [
        acl
        for acl in everything
        if kind in ("", word(acl.resource_type)) and permission in ("", word(acl.permission))
    ]
    context = {
        "part": paged(found, query, _COLUMNS, _matches),
        "secured": secured,
        "word": word,
        "written": written,
        "kind": kind,
        "topic": topic,
        "permission": permission,
        "types": choices(ResourceType),
        "type_choices": [(each, each) for each in choices(ResourceType)],
        "operations": choices(AclOperation),
        "may_alter": secured and view.offers("ALTER", (await view.cluster_view()).operations),
    }
    if view.is_partial and not errors:
        return await view.piece("acls_list.html", **context)
    return await view.page(
        "acls.html", status=400 if errors else 200, **context, values=values, errors=errors
    )


def _matches(acl: AclBinding, text: str) -> bool:
    return any(
        text in each.lower() for each in (acl.principal, acl.resource_name, acl.host, word(acl.operation))
    )


async def create(view: View) -> Response:
    """Create one ACL for each ticked operation."""
    form = await view.form()
    bindings = bindings_of(form)
    if not form.errors:
        failures = [error for error in await view.admin.create_acls(bindings) if error is not None]
        if not failures:
            await wait_until_applied(view.admin, ClusterState(acls=frozenset(bindings)))
            return view.redirect_with_notice(
                "/acls", f"{plural(len(bindings), 'ACL')} created for {bindings[0].principal}."
            )
        form.refuse("principal", sentence(failures[0]))
    names = ("principal", "resource_type", "resource_name", "pattern_type", "host", "permission")
    return await _page(view, {name: form.text(name) for name in names}, form.errors)


def bindings_of(form: Form) -> list[AclBinding]:
    """The ACLs that a form describes; mistakes are among its errors."""
    kind = member_of(ResourceType, form.one_of("resource_type", choices(ResourceType)))
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else form.needed("resource_name")
    given = form.needed("principal")
    principal = given and principal_of(given)
    operations = form.all("operation")
    if not operations:
        form.refuse("operation", "Choose at least one operation.")
    pattern = member_of(PatternType, form.one_of("pattern_type", choices(PatternType)))
    permission = member_of(AclPermission, form.one_of("permission", ("allow", "deny")))
    return [
        AclBinding(
            kind,
            name,
            pattern,
            principal,
            form.text("host") or "*",
            member_of(AclOperation, operation),
            permission,
        )
        for operation in operations
    ]


async def remove(view: View) -> Response:
    """Delete the ticked ACLs."""
    chosen = (await view.form()).all("acl")
    if not chosen:
        return view.redirect_with_notice("/acls", "No ACL was selected.", "bad")
    bindings = frozenset(map(binding_in, chosen))
    outcomes = await view.admin.delete_acls([AclFilter(*each) for each in bindings])
    raise_errors(outcomes)
    errors = [error for outcome in outcomes if isinstance(outcome, dict) for error in outcome.values()]
    raise_errors(errors)
    await wait_until_visible(view.admin, ClusterState(acls=bindings), lambda live: not bindings & live.acls)
    return view.redirect_with_notice("/acls", f"{plural(len(errors), 'ACL')} deleted.")


def written(acl: AclBinding) -> str:
    """An ACL as a form field."""
    return _SEPARATOR.join(word(part) if isinstance(part, IntEnum) else part for part in acl)


def binding_in(text: str) -> AclBinding:
    """Parse the result of `written`.

    :raises PageError: When it is malformed.
    """
    parts: Sequence[str] = text.split(_SEPARATOR)
    if len(parts) != len(AclBinding._fields):
        raise wrong_form("This is not one of the listed ACLs.")
    kind, name, pattern, principal, host, operation, permission = parts
    return AclBinding(
        member_of(ResourceType, kind),
        name,
        member_of(PatternType, pattern),
        principal,
        host,
        member_of(AclOperation, operation),
        member_of(AclPermission, permission),
    )


MENU = MenuEntry("Security", "ACLs", "/acls", "DESCRIBE")
ROUTES = (
    Route("/acls", show),
    Route("/acls", create, "POST"),
    Route("/acls/remove", remove, "POST"),
)
