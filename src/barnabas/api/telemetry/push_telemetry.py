"""PushTelemetry (72), v0: metrics of a client, which /metrics shows while the client is connected (KIP-714).

Errors: INVALID_REQUEST (no instance id, or after a terminating push), THROTTLING_QUOTA_EXCEEDED (before the interval is
over), UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, INVALID_RECORD (no metrics).
"""

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.telemetry.attributes import attributes_of
from barnabas.telemetry.otlp import DataPoint, MalformedMetrics, read_points
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from barnabas.wire.records.compression import Compression, decompress

#: Maximum decompressed size of a push.
UNPACKED_BYTES_MAX = 8 << 20

#: Data points that are stored before other clients are served.
PUSHED_COUNT_MAX = 500

#: Labels of a client's metrics; its address and port would make new series for each connection.
LABELS = ("client_instance_id", "client_id", "client_software_name", "client_software_version")


def error_response(request: PushTelemetryRequest, error: KafkaError) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error.code)


@serves(PushTelemetryRequest, PushTelemetryResponse, 0, 0, error_response=error_response)
async def handle(context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    telemetry = context.broker.client_telemetry
    instance = telemetry.instances.push(
        request.client_instance_id,
        attributes_of(context, request.client_instance_id),
        subscription_id=request.subscription_id,
        is_terminating=request.terminating,
        compression=request.compression_type,
        size_bytes=len(request.metrics),
        size_bytes_max=context.broker.config.integer("telemetry.max.bytes"),
    )
    if request.metrics:
        try:
            points = await _read(context, request)
        except (KafkaError, MalformedMetrics) as error:
            message = f"The metrics cannot be read: {error}"
            raise KafkaError(ErrorCode.INVALID_RECORD, message) from error
        labels = {name: instance.attributes[name] for name in LABELS}
        for start in range(0, len(points), PUSHED_COUNT_MAX):
            telemetry.metrics.push(instance.instance_id, labels, points[start : start + PUSHED_COUNT_MAX])
            await context.checkpoint()
    return PushTelemetryResponse()


async def _read(context: RequestContext, request: PushTelemetryRequest) -> list[DataPoint]:
    """Return all data points; a thread reads them, because a few bytes may decompress to megabytes."""
    codec, data = Compression(request.compression_type), request.metrics
    if codec is not Compression.NONE:
        data = await asyncio.to_thread(decompress, codec, data, UNPACKED_BYTES_MAX)
    points: list[DataPoint] = []
    for some_points in read_points(data):
        points += some_points
        await context.checkpoint()
    return points
