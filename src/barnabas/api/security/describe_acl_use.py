"""DescribeAclUse (32001), v0-v1: the ACLs that have allowed or denied something, and when each was last used.

v1: ACLs that were created since the start of the record, and when.

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

_UNKNOWN = -1


def error_response(request: DescribeAclUseRequest, error: KafkaError) -> DescribeAclUseResponse:
    return DescribeAclUseResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeAclUseRequest, DescribeAclUseResponse, 0, 1, error_response=error_response)
async def handle(context: RequestContext, request: DescribeAclUseRequest) -> DescribeAclUseResponse:
    await require_cluster(context, AclOperation.DESCRIBE)
    authorizer = require_authorizer(context)
    used = [
        UsedAcl(*acl, _or_unknown(last_used_ms), _or_unknown(created_ms))
        async for acl, last_used_ms, created_ms in context.each(authorizer.used())
        if last_used_ms is not None or context.api_version > 0
    ]
    return DescribeAclUseResponse(since=authorizer.since_ms, acls=used)


def _or_unknown(time_ms: int | None) -> int:
    return _UNKNOWN if time_ms is None else time_ms
