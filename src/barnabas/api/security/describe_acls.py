"""DescribeAcls (29), v0-v3: the ACLs that a filter matches, by resource.

v3: resources of type USER (KIP-373).
Errors: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED without an authorizer. The number of UNKNOWN closes the
connection.
"""

from collections.abc import Iterable

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.acls import filter_of, has_unknown, require_authorizer
from barnabas.metadata.acls import matching
from barnabas.wire.acls import AclBinding, AclOperation, PatternType
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def error_response(request: DescribeAclsRequest, error: KafkaError) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeAclsRequest, DescribeAclsResponse, 0, 3, error_response=error_response)
async def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse | None:
    if has_unknown(request):
        context.close_after = True
        return None
    await require_cluster(context, AclOperation.DESCRIBE)
    require_authorizer(context)
    acls = context.broker.image.acls
    bindings = await context.broker.worker.call(matching, acls, filter_of(request))
    return DescribeAclsResponse(resources=await _by_resource(context, bindings))


async def _by_resource(context: RequestContext, bindings: Iterable[AclBinding]) -> list[DescribeAclsResource]:
    resources: dict[tuple[int, str, PatternType], DescribeAclsResource] = {}
    async for binding in context.each(bindings):
        key = (binding.resource_type, binding.resource_name, binding.pattern_type)
        if key not in resources:
            resources[key] = DescribeAclsResource(
                resource_type=binding.resource_type,
                resource_name=binding.resource_name,
                pattern_type=binding.pattern_type,
            )
        resources[key].acls.append(
            AclDescription(
                principal=binding.principal,
                host=binding.host,
                operation=binding.operation,
                permission_type=binding.permission,
            )
        )
    return list(resources.values())
