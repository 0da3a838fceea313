"""DescribeConfigs (32), v0-v4: effective values, their sources and their documentation.

v0 shows only whether a value is the default.  v1: synonyms and sources (KIP-226).  v3: types and documentation
(KIP-569).
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST for another broker or an
empty name; TOPIC_, GROUP_, CLUSTER_AUTHORIZATION_FAILED. An unknown type makes the whole request invalid.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TypeAlias

from barnabas.api.authorization import ask_authorizer
from barnabas.api.configs.resources import check_named, kind_of, require_for, resource_of
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.config.describe import (
    DescribedConfig,
    describe_broker,
    describe_broker_default,
    describe_topic,
)
from barnabas.config.describe_groups import describe_client_metrics, describe_group, describe_loggers
from barnabas.metadata.configs import CONFIG_RECORD_TYPES
from barnabas.metadata.topics import check_name, unknown_topic
from barnabas.telemetry.logs import levels
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.codec import Repeated
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def error_response(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_error_result(resource, error) for resource in request.resources])


@serves(DescribeConfigsRequest, DescribeConfigsResponse, 0, 4, error_response=error_response)
async def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource once."""
    resources = await context.compute(_without_duplicates, request)
    topics = (each.resource_name for each in resources if each.resource_type == ResourceKind.TOPIC)
    await ask_authorizer(context, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topics)
    descriptions = _Descriptions(context, request)
    results = [await _result(descriptions, resource) async for resource in context.each(resources)]
    return DescribeConfigsResponse(results=results)


def _without_duplicates(request: DescribeConfigsRequest) -> Collection[DescribeConfigsResource]:
    """Return each resource once, as it is first named. Kafka repeats duplicates, which its own client cannot read.

    :raises KafkaError: INVALID_REQUEST for an unknown type.
    """
    named: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in request.resources:
        kind = kind_of(resource.resource_type)
        named.setdefault((kind, resource.resource_name), resource)
    return named.values()


async def _result(descriptions: "_Descriptions", resource: DescribeConfigsResource) -> DescribeConfigsResult:
    try:
        configs = await descriptions.of(resource)
    except KafkaError as error:
        return _error_result(resource, error)
    return DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, configs=configs
    )


#: Requested keys; None for all.
Keys: TypeAlias = frozenset[str] | None
Configs: TypeAlias = Repeated[DescribeConfigsResourceResult]

_name = attrgetter("name")


class _Descriptions:
    """Describes the configs of a request's resources. Equal parts, which topics mostly have, are described and held
    once.
    """

    def __init__(self, context: RequestContext, request: DescribeConfigsRequest) -> None:
        self._context = context
        self._request = request
        self._made: dict[object, Configs] = {}
        self._defaults: dict[Keys, Sequence[DescribedConfig]] = {}  #: for topics without own values

    async def of(self, requested: DescribeConfigsResource) -> Configs:
        """Describe one resource.

        :raises KafkaError: If it does not exist, or the principal may not describe it.
        """
        image = self._context.broker.image
        resource = resource_of(
            ResourceKind(requested.resource_type), requested.resource_name, self._context.broker.broker_id
        )
        await require_for(self._context, AclOperation.DESCRIBE_CONFIGS, resource)
        check_named(resource)
        if resource.kind is ResourceKind.TOPIC:
            check_name(resource.name)
            if resource.name not in image.topics:
                raise unknown_topic(resource.name)
        overrides = image.configs(resource) if resource.kind in CONFIG_RECORD_TYPES else {}
        name = resource.name if resource.kind is ResourceKind.BROKER else None
        keys = frozenset(requested.configuration_keys) if requested.configuration_keys else None
        alike = resource.kind, name, frozenset(overrides.items()), keys
        configs = self._made.get(alike)
        if configs is None:
            if resource.kind is ResourceKind.TOPIC and overrides:
                configs = self._topic(overrides, keys)
            else:
                configs = self._configs(self._describe(resource, overrides, keys))
            self._made[alike] = configs
        return configs

    def _topic(self, overrides: Mapping[str, str], keys: Keys) -> Configs:
        """Describe a topic with own values; everything else is shared with all topics."""
        broker = self._context.broker.dynamic_config.layers
        defaults = self._defaults.get(keys)
        if defaults is None:
            defaults = self._defaults[keys] = describe_topic(broker, {}, keys)
        runs: list[Configs] = []
        start = 0
        for entry in describe_topic(
            broker, overrides, overrides.keys() if keys is None else overrides.keys() & keys
        ):
            end = bisect_left(defaults, entry.name, key=_name)
            runs += self._run(keys, start, end), self._configs([entry])
            start = end + (end < len(defaults) and defaults[end].name == entry.name)
        runs.append(self._run(keys, start, len(defaults)))
        return Repeated.of_runs(runs)

    def _run(self, keys: Keys, start: int, end: int) -> Configs:
        configs = self._made.get((keys, start, end))
        if configs is None:
            configs = self._made[keys, start, end] = self._configs(self._defaults[keys][start:end])
        return configs

    def _configs(self, entries: Iterable[DescribedConfig]) -> Configs:
        return Repeated(_config(self._request, entry) for entry in entries)

    def _describe(
        self, resource: Resource, overrides: Mapping[str, str], names: Keys
    ) -> Sequence[DescribedConfig]:
        broker = self._context.broker.dynamic_config.layers
        match resource.kind:
            case ResourceKind.TOPIC:
                return describe_topic(broker, overrides, names)
            case ResourceKind.BROKER if resource.name == EVERY_BROKER:
                return describe_broker_default(overrides, names)
            case ResourceKind.BROKER:
                return describe_broker(broker, names)
            case ResourceKind.BROKER_LOGGER:
                return describe_loggers(levels(), names)
            case ResourceKind.CLIENT_METRICS:
                return describe_client_metrics(overrides, names)
            case ResourceKind.GROUP:
                return describe_group(broker, overrides, names)


def _config(request: DescribeConfigsRequest, entry: DescribedConfig) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in entry.synonyms
    ]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.source == ConfigSource.DEFAULT_CONFIG,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=entry.config_type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _error_result(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
