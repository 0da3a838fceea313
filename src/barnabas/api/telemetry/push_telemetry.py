"""PushTelemetry (72), v0: a client's metrics, which /metrics shows until the client is gone (KIP-714).

Errors: INVALID_REQUEST (no instance's id, or after a terminating push), THROTTLING_QUOTA_EXCEEDED (before the interval
is over), UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, INVALID_RECORD (no metrics).
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.telemetry.attributes import attributes_of
from barnabas.telemetry.otlp import MalformedMetrics, read_points
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from barnabas.wire.records.compression import Compression, decompress

#: What a push may unpack to.
UNPACKED_BYTES_MAX = 8 << 20

#: Labels of a client's metrics; its address and port would make new series for each connection.
LABELS = ("client_instance_id", "client_id", "client_software_name", "client_software_version")


def refuse(request: PushTelemetryRequest, error: KafkaError) -> PushTelemetryResponse:
    """The error at the top."""
    return PushTelemetryResponse(error_code=error.code)


@serves(PushTelemetryRequest, PushTelemetryResponse, 0, 0, refuse=refuse)
async def handle(context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Keep what the client tells, if it is its turn."""
    telemetry = context.node.client_telemetry
    instance = telemetry.instances.push(
        request.client_instance_id,
        attributes_of(context, request.client_instance_id),
        subscription_id=request.subscription_id,
        is_terminating=request.terminating,
        compression=request.compression_type,
        size_bytes=len(request.metrics),
        size_bytes_max=context.node.config.integer("telemetry.max.bytes"),
    )
    if request.metrics:
        labels = {name: instance.attributes[name] for name in LABELS}
        try:
            unpacked = decompress(Compression(request.compression_type), request.metrics, UNPACKED_BYTES_MAX)
            points = list(read_points(unpacked))
        except (KafkaError, MalformedMetrics) as error:
            message = f"The metrics cannot be read: {error}"
            raise KafkaError(ErrorCode.INVALID_RECORD, message) from error
        telemetry.metrics.push(instance.instance_id, labels, points)
    return PushTelemetryResponse()
