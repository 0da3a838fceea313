"""ApiVersions (18), v0-v4: the served APIs and versions, and the features of the cluster.

v1: throttle time.  v3: the client's software (KIP-511), features (KIP-584).  v4: features from version 0 on.
Errors: UNSUPPORTED_VERSION for a version above the served ones, in a response of v0 with all APIs (KIP-511);
INVALID_REQUEST for a software name or version that is not a word.
"""

import re
from collections.abc import Callable

from barnabas.api.context import BrokerContext, RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.features import supported_features
from barnabas.wire.barnabas_messages import is_kafka_api
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest

#: KIP-511 allows these, because they become parts of metric names.
_SOFTWARE_WORD = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

#: Versions that are advertised but not served: librdkafka takes a broker without Produce v0 for one that cannot read
#: compressed batches. Apache Kafka does the same (KAFKA-18659).
_FIRST_VERSION_NAMED = {ProduceRequest.API_KEY: 0}


#: Advertised only if something consumes client metrics, as in Apache Kafka: a client that sees them requests its
#: subscription at every start, and librdkafka logs that.
_TELEMETRY = frozenset({GetTelemetrySubscriptionsRequest.API_KEY, PushTelemetryRequest.API_KEY})
_KAFKAS_OWN_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"


def error_response(request: ApiVersionsRequest, error: KafkaError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code)


@serves(
    ApiVersionsRequest, ApiVersionsResponse, 0, 4, error_response=error_response, negotiates_versions=True
)
async def handle(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Respond from the registry, so that advertised and served versions are the same."""
    if context.api_version >= 3:
        _remember_software(context, request)
    is_named = _naming(context)
    apis = [
        ApiVersion(
            api_key=api_key,
            min_version=_FIRST_VERSION_NAMED.get(api_key, api.versions.first),
            max_version=api.versions.last,
        )
        for api_key, api in context.broker.apis.items()
        if is_named(api_key)
    ]
    unsupported = context.version_unsupported
    code = ErrorCode.UNSUPPORTED_VERSION if unsupported else ErrorCode.NONE
    if context.connection.authenticator is not None and not unsupported:
        context.connection.authenticator.on_api_versions_answered()
    response = ApiVersionsResponse(error_code=code, api_keys=apis)
    if context.api_version >= 3:
        _add_features(context, response)
    return response


def _naming(context: RequestContext) -> Callable[[int], bool]:
    """Return whether an API is advertised to this client."""
    if context.connection.is_own_client:
        return lambda api_key: True
    hidden = frozenset() if _consumes_telemetry(context.broker) else _TELEMETRY
    return lambda api_key: is_kafka_api(api_key) and api_key not in hidden


def _consumes_telemetry(broker: BrokerContext) -> bool:
    """Return whether /metrics shows client metrics, or a reporter for them is configured."""
    if any(reporter != _KAFKAS_OWN_REPORTER for reporter in broker.config.items("metric.reporters")):
        return True
    is_subscribed = any(reporter.metrics for reporter in broker.client_telemetry.instances.subscriptions)
    return is_subscribed and bool(broker.config.text("barnabas.metrics.listener"))


def _add_features(context: RequestContext, response: ApiVersionsResponse) -> None:
    image = context.broker.image
    level_min = 0 if context.api_version >= 4 else 1  # clients of version 3 take 0 for an error
    response.supported_features = [
        SupportedFeatureKey(feature.name, feature.level_min, feature.level_max)
        for feature in supported_features(context.broker.apis).values()
        if feature.level_min >= level_min
    ]
    response.finalized_features_epoch = image.revision
    response.finalized_features = [
        FinalizedFeatureKey(name, max_version_level=level, min_version_level=level)
        for name, level in image.finalized_features.items()
    ]


def _remember_software(context: RequestContext, request: ApiVersionsRequest) -> None:
    for word in (request.client_software_name, request.client_software_version):
        if not _SOFTWARE_WORD.fullmatch(word):
            message = f"'{word}' is not a valid name or version of client software: use letters, digits, '-' and '.'."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    context.connection.client_software_name = request.client_software_name
    context.connection.client_software_version = request.client_software_version
