"""DeleteAcls (31), v0-v3: delete the ACLs that filters match.

v3: resources of type USER (KIP-373).
Errors, per filter: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED without an authorizer, INVALID_REQUEST if a request
deletes too many or a number is not Kafka's; per ACL, POLICY_VIOLATION if it must stay. The number of UNKNOWN closes the
connection.
"""

import functools

from barnabas.api.audit import CLUSTER, Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.acls import audited_acl, filter_of, has_unknown, require_authorizer
from barnabas.metadata.acls import Removed, decide_remove_acls, matching_each
from barnabas.policy.rules import AclAction
from barnabas.wire.acls import AclFilter, AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def error_response(request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=error.code, error_message=error.message or None)
    return DeleteAclsResponse(filter_results=[result for _ in request.filters])


def audit(_request: DeleteAclsRequest, response: DeleteAclsResponse) -> Results:
    for result in response.filter_results:
        yield CLUSTER, result.error_code, result.error_message
        for acl in result.matching_acls:
            resource = audited_acl(acl.resource_type, acl.resource_name, acl.pattern_type)
            yield resource, acl.error_code, acl.error_message


@serves(
    DeleteAclsRequest,
    DeleteAclsResponse,
    0,
    3,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse | None:
    if any([has_unknown(requested) async for requested in context.each(request.filters)]):
        context.close_after = True
        return None
    filters = [filter_of(requested) async for requested in context.each(request.filters)]
    await require_cluster(context, AclOperation.ALTER)
    require_authorizer(context)
    check = functools.partial(context.policies.check_acl, AclAction.DELETE)
    matches = await context.broker.worker.call(matching_each, context.broker.image.acls, filters)
    bindings = list(dict.fromkeys(binding for matched in matches for binding in matched))
    removed_acls = await context.write_each(
        bindings,
        lambda image, part: decide_remove_acls(image.acls, part, check),
        Removed,
    )
    removed = dict(zip(bindings, removed_acls, strict=True))
    pairs = context.each(zip(filters, matches, strict=True))
    return DeleteAclsResponse(
        filter_results=[
            _result(acl_filter, [removed[binding] for binding in matched])
            async for acl_filter, matched in pairs
        ]
    )


def _result(acl_filter: AclFilter, removed_acls: list[Removed]) -> DeleteAclsFilterResult:
    if acl_filter.is_unknown:
        message = "The filter has an unknown type, operation or permission."
        return DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=message)
    return DeleteAclsFilterResult(
        error_message=None, matching_acls=[_matching(removed) for removed in removed_acls]
    )


def _matching(removed: Removed) -> DeleteAclsMatchingAcl:
    binding, error = removed
    return DeleteAclsMatchingAcl(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )
