"""DescribeAclDecisions (32008), v0: the distinct decisions by ACLs, when each was last used, and super users.

An API of Barnabas. Each broker knows only its own decisions since its start. Times are exact to ten minutes.

Errors: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED without an authorizer.
"""

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.acls import require_authorizer
from barnabas.wire.acls import AclOperation
from barnabas.wire.barnabas_messages.describe_acl_decisions import (
    DescribeAclDecisionsRequest,
    DescribeAclDecisionsResponse,
    RecordedAclDecision,
)
from barnabas.wire.errors import KafkaError


def error_response(request: DescribeAclDecisionsRequest, error: KafkaError) -> DescribeAclDecisionsResponse:
    return DescribeAclDecisionsResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeAclDecisionsRequest, DescribeAclDecisionsResponse, 0, 0, error_response=error_response)
async def handle(
    context: RequestContext, request: DescribeAclDecisionsRequest
) -> DescribeAclDecisionsResponse:
    await require_cluster(context, AclOperation.DESCRIBE)
    record = require_authorizer(context).decision_record()
    return DescribeAclDecisionsResponse(
        since=record.since_ms,
        left_out_count=record.left_out_count,
        super_users=sorted(record.super_users),
        allows_if_no_acl=record.allows_if_no_acl,
        decisions=[RecordedAclDecision(*decision) async for decision in context.each(record.decisions)],
    )
