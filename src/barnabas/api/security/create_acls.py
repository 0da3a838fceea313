"""CreateAcls (30), v0-v3: create ACLs, each on its own.

v3: resources of type USER (KIP-373).
Errors, per ACL: INVALID_REQUEST, POLICY_VIOLATION; for all of them CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
without an authorizer. The number of UNKNOWN closes the connection.
"""

import functools

from barnabas.api.audit import Results
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.acls import audited_acl, binding_of, has_unknown, require_authorizer
from barnabas.metadata.acls import decide_create_acls
from barnabas.policy.rules import AclAction
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def error_response(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_result(error) for _ in request.creations])


def audit(request: CreateAclsRequest, response: CreateAclsResponse) -> Results:
    for creation, result in zip(request.creations, response.results, strict=True):
        resource = audited_acl(creation.resource_type, creation.resource_name, creation.resource_pattern_type)
        yield resource, result.error_code, result.error_message


@serves(
    CreateAclsRequest,
    CreateAclsResponse,
    0,
    3,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse | None:
    """Create the ACLs; they are in force when the response is sent."""
    if any([has_unknown(creation) async for creation in context.each(request.creations)]):
        context.close_after = True
        return None
    bindings = [binding_of(creation) async for creation in context.each(request.creations)]
    await require_cluster(context, AclOperation.ALTER)
    require_authorizer(context)
    check = functools.partial(context.policies.check_acl, AclAction.CREATE)
    outcomes = await context.write_each(
        bindings,
        lambda image, part: decide_create_acls(image.acls, part, check),
        lambda _, error: error,
    )
    return CreateAclsResponse(results=[_result(outcome) async for outcome in context.each(outcomes)])


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=error.message or None)
