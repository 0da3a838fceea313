"""Checks of all requests of group members."""

from barnabas.api.authorization import ask_authorizer, require_now
from barnabas.api.context import RequestContext
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError


async def check_member_request(context: RequestContext, group_id: str) -> None:
    """Check the permission to read as the group, and the group id.

    :raises KafkaError: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID.
    """
    await ask_authorizer(context, AclOperation.READ, ResourceType.GROUP, (group_id,))
    check_member_request_now(context, group_id)


def check_member_request_now(context: RequestContext, group_id: str) -> None:
    """Check as `check_member_request` does, after `ask_authorizer`.

    :raises KafkaError: As `check_member_request`.
    """
    require_now(context, AclOperation.READ, ResourceType.GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
