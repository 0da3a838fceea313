"""What ACLs allow a principal, and which of them decide on one operation."""

from starlette.responses import Response

from barnabas.console.formatting import word
from barnabas.console.forms import too_long
from barnabas.console.page import Route
from barnabas.console.pages.acls import choices, member_of
from barnabas.console.problems import not_found
from barnabas.console.view import View
from barnabas.security.acl_review import AclQuestion, effective, explain
from barnabas.wire.acls import CLUSTER_NAME, WILDCARD, AclBinding, AclOperation, ResourceType, principal_of
from barnabas.wire.errors import ErrorCode, KafkaError

_FIELDS = ("principal", "operation", "type", "name", "host")


async def show(view: View) -> Response:
    """Show the permissions of the principal in the address; with a resource, also whether one operation is allowed."""
    given = {field: view.query.get(field, "").strip() for field in _FIELDS}
    if any(map(too_long, given.values())):
        raise not_found()
    principal = given["principal"] and principal_of(given["principal"])
    acls = await _acls(view)
    question = _question(principal, given)
    return await view.page(
        "acl_review.html",
        secured=acls is not None,
        given=given,
        reviewed=principal,
        question=question,
        explanation=None if question is None else explain(acls or [], question),
        permissions=effective(acls or [], principal) if principal else [],
        types=[(each, each) for each in choices(ResourceType)],
        operations=[(each, each) for each in choices(AclOperation) if each != "all"],
        word=word,
    )


async def _acls(view: View) -> list[AclBinding] | None:
    """Return all ACLs; None if the cluster has no authorizer."""
    try:
        acls: list[AclBinding] = await view.admin.describe_acls(None)
    except KafkaError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            raise
        return None
    return acls


def _question(principal: str, given: dict[str, str]) -> AclQuestion | None:
    """Return what is asked; None if the address names no resource.

    :raises PageError: If a word is not one of the choices.
    """
    if not principal or not given["type"] or not given["operation"]:
        return None
    kind = member_of(ResourceType, given["type"])
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else given["name"]
    if not name:
        return None
    return AclQuestion(
        principal, member_of(AclOperation, given["operation"]), kind, name, given["host"] or WILDCARD
    )


ROUTES = (Route("/acls/review", show),)
