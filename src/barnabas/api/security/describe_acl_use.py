"""DescribeAclUse (32001), v0: the ACLs that have decided something since this broker's authorizer began.

Only Barnabas has it. Each broker tells of what it was asked itself, and forgets when it is stopped.

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


def refuse(request: DescribeAclUseRequest, error: KafkaError) -> DescribeAclUseResponse:
    """The error at the top."""
    return DescribeAclUseResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeAclUseRequest, DescribeAclUseResponse, 0, 0, refuse=refuse)
async def handle(context: RequestContext, request: DescribeAclUseRequest) -> DescribeAclUseResponse:
    """Answer from what the authorizer remembers."""
    require_cluster(context, AclOperation.DESCRIBE)
    authorizer = require_authorizer(context)
    used = context.each(authorizer.used())
    return DescribeAclUseResponse(
        since=authorizer.since_ms, acls=[UsedAcl(*binding) async for binding in used]
    )
