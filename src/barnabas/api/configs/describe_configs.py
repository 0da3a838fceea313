"""DescribeConfigs (32), v1-v4: effective values, where each comes from, and what it means.

v1: synonyms and sources (KIP-226).  v3: types and documentation (KIP-569).
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST for a broker that is
not this one or a type that is not described here.
"""

from collections.abc import Sequence

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.config.describe import ConfigEntry, describe_broker, describe_broker_default, describe_topic
from barnabas.metadata.topics import check_name, unknown_topic
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = RESOURCE_TYPES = 2, 4, 8, 16, 32


def refuse(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    """Every resource, in error."""
    return DescribeConfigsResponse(results=[_refused(resource, error) for resource in request.resources])


@serves(DescribeConfigsRequest, DescribeConfigsResponse, 1, 4, refuse=refuse)
async def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource for itself; a type that Kafka does not have spoils the whole request."""
    for resource in request.resources:
        if resource.resource_type not in RESOURCE_TYPES:
            message = f"Resource type {resource.resource_type} is unknown: {RESOURCE_TYPES} are known."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    results = []
    for resource in request.resources:
        try:
            entries = _describe(context, resource)
        except KafkaError as error:
            results.append(_refused(resource, error))
            continue
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        result.configs = [_config(request, entry) for entry in entries]
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _describe(context: RequestContext, resource: DescribeConfigsResource) -> Sequence[ConfigEntry]:
    node = context.node
    names = resource.configuration_keys or None
    if resource.resource_type == TOPIC:
        check_name(resource.resource_name)
        if resource.resource_name not in node.image.topics:
            raise unknown_topic(resource.resource_name)
        overrides = node.image.topic_configs.get(resource.resource_name, {})
        return describe_topic(node.config, overrides, names=names)
    if resource.resource_type == BROKER:
        if not resource.resource_name:
            return describe_broker_default({}, names)
        _check_broker(node.broker_id, resource.resource_name)
        return describe_broker(node.config, names=names)
    message = f"Resource type {resource.resource_type} is not described here: {TOPIC} (topic), {BROKER} (broker) are."
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_broker(broker_id: int, name: str) -> None:
    if name != str(broker_id):
        message = f"Broker '{name}' cannot be described here: this is broker {broker_id}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _config(request: DescribeConfigsRequest, entry: ConfigEntry) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in entry.synonyms
    ]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=entry.config_type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _refused(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
