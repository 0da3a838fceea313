"""Checks of all requests of group members."""

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError


def check_member_request(context: RequestContext, group_id: str) -> None:
    """Check the permission to read as the group, and the group id.

    :raises KafkaError: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID.
    """
    require(context, AclOperation.READ, ResourceType.GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
