"""What all requests of members have in common."""

from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError


def check_member_request(context: RequestContext, group_id: str) -> None:
    """Refuse who may not read as the group, and a group without a name.

    :raises KafkaError: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID.
    """
    require(context, AclOperation.READ, ResourceType.GROUP, group_id)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty: a group needs a name.")
