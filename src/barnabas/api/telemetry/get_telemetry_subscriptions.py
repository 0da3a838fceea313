"""GetTelemetrySubscriptions (71), v0: the metrics that a client should push, and the interval (KIP-714).

Errors: THROTTLING_QUOTA_EXCEEDED (before the interval is over).
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.telemetry.attributes import attributes_of
from barnabas.base.ids import ZERO_UUID
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.wire.records.compression import Compression

#: The best first, as Kafka lists them; uncompressed pushes are accepted, too.
ACCEPTED = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)


def error_response(
    request: GetTelemetrySubscriptionsRequest, error: KafkaError
) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(error_code=error.code)


@serves(
    GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse, 0, 0, error_response=error_response
)
async def handle(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Return the matching subscriptions; a client without an id gets one."""
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = context.broker.rng.randbytes(16)
    instances = context.broker.client_telemetry.instances
    instance = instances.fetch_subscription(instance_id, attributes_of(context, instance_id))
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=context.broker.config.integer("telemetry.max.bytes"),
        delta_temporality=True,
        requested_metrics=list(instance.metrics),
    )
