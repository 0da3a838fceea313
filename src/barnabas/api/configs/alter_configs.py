"""AlterConfigs (33), v0-v2: replace all configs of resources (KIP-133).

Loggers support only IncrementalAlterConfigs.
Errors, per resource: those of IncrementalAlterConfigs.
"""

from barnabas.api.configs.alteration import Outcome, RequestedAlteration, RequestedEdit, alter, config_results
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.config.alter_op import OpType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def error_response(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[_resource_response(resource, error) for resource in request.resources]
    )


@serves(AlterConfigsRequest, AlterConfigsResponse, 0, 2, error_response=error_response, audit=config_results)
async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    requested = await context.compute(_requested, request)
    outcomes = await alter(context, requested, validate_only=request.validate_only)
    pairs = context.each(zip(request.resources, outcomes, strict=True))
    responses = [_resource_response(*pair) async for pair in pairs]
    return AlterConfigsResponse(responses=responses)


def _requested(request: AlterConfigsRequest) -> list[RequestedAlteration]:
    return [
        RequestedAlteration(
            resource.resource_type,
            resource.resource_name,
            [RequestedEdit(config.name, OpType.SET, config.value) for config in resource.configs],
            replaces=True,
        )
        for resource in request.resources
    ]


def _resource_response(resource: AlterConfigsResource, outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.code if outcome else ErrorCode.NONE,
        error_message=outcome.message if outcome else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
