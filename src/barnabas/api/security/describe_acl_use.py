"""DescribeAclUse (32001), v0: the ACLs that have allowed or denied something, and when each was last used.

An API of Barnabas. Each broker knows only its own decisions. Times are exact to ten minutes.

Errors: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED without an authorizer.
"""

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.acls import require_authorizer
from barnabas.wire.acls import AclOperation
from barnabas.wire.barnabas_messages.describe_acl_use import (
    DescribeAclUseRequest,
    DescribeAclUseResponse,
    UsedAcl,
)
from barnabas.wire.errors import KafkaError


def error_response(request: DescribeAclUseRequest, error: KafkaError) -> DescribeAclUseResponse:
    return DescribeAclUseResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeAclUseRequest, DescribeAclUseResponse, 0, 0, error_response=error_response)
async def handle(context: RequestContext, request: DescribeAclUseRequest) -> DescribeAclUseResponse:
    await require_cluster(context, AclOperation.DESCRIBE)
    authorizer = require_authorizer(context)
    used = context.each(authorizer.used())
    return DescribeAclUseResponse(
        since=authorizer.since_ms, acls=[UsedAcl(*acl, last_used) async for acl, last_used in used]
    )
