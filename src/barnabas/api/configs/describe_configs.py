"""DescribeConfigs (32), v1-v4: effective values, where each comes from, and what it means.

v1: synonyms and sources (KIP-226).  v3: types and documentation (KIP-569).
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST for a broker that is
not this one or a name that is empty; TOPIC_, GROUP_, CLUSTER_AUTHORIZATION_FAILED. An unknown type makes the
whole request invalid.
"""

from collections.abc import Sequence

from barnabas.api.configs.resources import kind_of, require_for, resource_of
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.config.describe import ConfigEntry, describe_broker, describe_broker_default, describe_topic
from barnabas.config.describe_groups import describe_client_metrics, describe_group, describe_loggers
from barnabas.config.resources import EVERY_BROKER, ResourceKind
from barnabas.metadata.configs import CONFIG_NOUNS
from barnabas.metadata.topics import check_name, unknown_topic
from barnabas.telemetry.logs import levels
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def refuse(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    """Every resource, in error."""
    return DescribeConfigsResponse(results=[_refused(resource, error) for resource in request.resources])


@serves(DescribeConfigsRequest, DescribeConfigsResponse, 1, 4, refuse=refuse)
async def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource for itself; a type that Kafka does not have spoils the whole request."""
    for resource in request.resources:
        kind_of(resource.resource_type)
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


def _describe(context: RequestContext, asked: DescribeConfigsResource) -> Sequence[ConfigEntry]:
    node = context.node
    dynamic = node.dynamic_config
    names = asked.configuration_keys or None
    resource = resource_of(ResourceKind(asked.resource_type), asked.resource_name, node.broker_id)
    require_for(context, AclOperation.DESCRIBE_CONFIGS, resource)
    overrides = node.image.configs(resource) if resource.kind in CONFIG_NOUNS else {}
    match resource.kind:
        case ResourceKind.TOPIC:
            check_name(resource.name)
            if resource.name not in node.image.topics:
                raise unknown_topic(resource.name)
            return describe_topic(
                dynamic.static, overrides, dynamic.of_broker, dynamic.of_every_broker, names=names
            )
        case ResourceKind.BROKER if resource.name == EVERY_BROKER:
            return describe_broker_default(overrides, names)
        case ResourceKind.BROKER:
            return describe_broker(dynamic.static, overrides, dynamic.of_every_broker, names)
        case ResourceKind.BROKER_LOGGER:
            return describe_loggers(levels(), names)
        case ResourceKind.CLIENT_METRICS:
            return describe_client_metrics(overrides, names)
        case ResourceKind.GROUP:
            return describe_group(
                dynamic.static, overrides, dynamic.of_broker, dynamic.of_every_broker, names
            )


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
