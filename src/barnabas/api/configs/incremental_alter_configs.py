"""IncrementalAlterConfigs (44), v0-v1: set, delete, append to or subtract from single configs (KIP-339).

Errors, per resource: INVALID_REQUEST for a duplicate resource or config, an unknown type or operation, a missing value,
the id of another broker, and invalid values of a broker; INVALID_CONFIG for invalid values of a topic, group or logger;
UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION; TOPIC_, GROUP_, CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.configs.alteration import Outcome, RequestedAlteration, RequestedEdit, alter, config_results
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def error_response(
    request: IncrementalAlterConfigsRequest, error: KafkaError
) -> IncrementalAlterConfigsResponse:
    responses = [_resource_response(resource, error) for resource in request.resources]
    return IncrementalAlterConfigsResponse(responses=responses)


@serves(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    0,
    1,
    error_response=error_response,
    audit=config_results,
)
async def handle(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    requested = await context.compute(_requested, request)
    outcomes = await alter(context, requested, validate_only=request.validate_only)
    pairs = context.each(zip(request.resources, outcomes, strict=True))
    responses = [_resource_response(*pair) async for pair in pairs]
    return IncrementalAlterConfigsResponse(responses=responses)


def _requested(request: IncrementalAlterConfigsRequest) -> list[RequestedAlteration]:
    return [
        RequestedAlteration(
            resource.resource_type,
            resource.resource_name,
            [
                RequestedEdit(config.name, config.config_operation, config.value)
                for config in resource.configs
            ],
            replaces=False,
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
