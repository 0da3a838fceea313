"""ListConfigResources (74), v0-v1: resources whose configs can be described (KIP-1142).

v0: only client metrics subscriptions, as ListClientMetricsResources (KIP-714).
Errors: CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION for an unknown type.
"""

from collections.abc import Iterable

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.listed_topics import is_listed
from barnabas.api.registry import serves
from barnabas.config.config_resource import ResourceKind
from barnabas.metadata.image import MetadataImage
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def error_response(request: ListConfigResourcesRequest, error: KafkaError) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)


@serves(ListConfigResourcesRequest, ListConfigResourcesResponse, 0, 1, error_response=error_response)
async def handle(context: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    await require_cluster(context, AclOperation.DESCRIBE_CONFIGS)
    unknown = set(request.resource_types).difference(ResourceKind)
    if unknown:
        known = ", ".join(f"{kind.value} ({kind.name})" for kind in ResourceKind)
        message = f"Resource type {min(unknown)} is unknown: there are {known}."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    kinds = [ResourceKind(code) for code in dict.fromkeys(request.resource_types)] or list(ResourceKind)
    if context.api_version == 0:
        kinds = [ResourceKind.CLIENT_METRICS]
    image = context.broker.image
    resources = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in kinds
        async for name in context.each(sorted(_names(image, kind)))
        if kind is not ResourceKind.TOPIC or is_listed(context, name)
    ]
    return ListConfigResourcesResponse(config_resources=resources)


def _names(image: MetadataImage, kind: ResourceKind) -> Iterable[str]:
    """Return names; groups and subscriptions are those that have configs."""
    match kind:
        case ResourceKind.TOPIC:
            return image.topics
        case ResourceKind.GROUP:
            return image.group_configs
        case ResourceKind.CLIENT_METRICS:
            return image.client_metrics_configs
        case ResourceKind.BROKER | ResourceKind.BROKER_LOGGER:
            return [str(broker.broker_id) for broker in image.brokers.values() if not broker.fenced]
