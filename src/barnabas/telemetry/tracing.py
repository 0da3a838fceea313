"""Spans: what one operation did and how long it took. Off unless asked for; OpenTelemetry when on."""

import time
from collections.abc import Callable
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from barnabas.base.clock import Clock, SystemClock

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer as OpenTelemetryTracer

_MISSING = (
    "tracing needs OpenTelemetry, which is not installed: get it with `pip install 'barnabas[tracing]'`"
)

#: How long a collector that does not answer may keep the broker from stopping.
CLOSE_TIMEOUT_S = 0.5


class SpanSink(Protocol):
    """Where finished spans go. Times are nanoseconds of the tracer's clock."""

    def record(self, name: str, started_ns: int, ended_ns: int, attributes: dict[str, object]) -> None:
        """Take one finished span."""
        ...

    def close(self) -> None:
        """Send what is still held back, and stop."""
        ...


class Tracer:
    """Makes finished spans: `started_ns = tracer.now_ns()`, do it, `tracer.record(name, started_ns, ...)`.

    On hot paths ask `enabled` first: that saves collecting the attributes.
    """

    def __init__(self, sink: SpanSink | None, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self.enabled = sink is not None
        self.now_ns = clock_ns  #: nanoseconds since an arbitrary point
        self._sink = sink

    @classmethod
    def disabled(cls) -> "Tracer":
        """A tracer that does nothing."""
        return cls(None)

    @classmethod
    def opentelemetry(cls, exporter: "SpanExporter | None" = None, clock: Clock | None = None) -> "Tracer":
        """A tracer that hands its spans to OpenTelemetry's SDK, which exports them from a thread of its own.

        Without an `exporter` they go out by OTLP over HTTP, to where OpenTelemetry's own environment
        variables say (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME ...).

        :raises ImportError: When OpenTelemetry is not installed; the message says how to.
        """
        clock_ns = time.perf_counter_ns
        epoch_ns = (clock or SystemClock()).wall_ms() * 1_000_000 - clock_ns()
        try:
            return cls(_OpenTelemetrySink(exporter or _otlp_exporter(), epoch_ns), clock_ns)
        except ModuleNotFoundError as error:
            raise ImportError(_MISSING) from error

    def record(self, name: str, started_ns: int, /, **attributes: object) -> None:
        """Make a span of what began at `started_ns` (from `now_ns`) and ends now.

        Attributes that are None are left out; what is neither text, number nor bool is written as text.
        """
        if self._sink is not None:
            self._sink.record(name, started_ns, self.now_ns(), attributes)

    def close(self) -> None:
        """Export the spans that wait, for half a second at most, and make no more."""
        sink, self._sink = self._sink, None
        self.enabled = False
        if sink is not None:
            sink.close()


class _OpenTelemetrySink:
    """Spans for OpenTelemetry's SDK, through its batching exporter."""

    def __init__(self, exporter: "SpanExporter", epoch_ns: int) -> None:
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create({"service.name": "barnabas"}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._exporter = exporter
        self._tracer: OpenTelemetryTracer = self._provider.get_tracer("barnabas")
        self._epoch_ns = epoch_ns  #: wall time at the zero of the tracer's clock

    def record(self, name: str, started_ns: int, ended_ns: int, attributes: dict[str, object]) -> None:
        """Take one finished span."""
        span = self._tracer.start_span(name, start_time=self._epoch_ns + started_ns)
        for key, value in attributes.items():
            if value is not None:
                span.set_attribute(key, value if isinstance(value, str | bool | int | float) else str(value))
        span.end(self._epoch_ns + ended_ns)

    def close(self) -> None:
        """Export what waits and stop the exporting thread; give up after `CLOSE_TIMEOUT_S`."""
        shutdown = Thread(target=self._provider.shutdown, name="tracing-shutdown", daemon=True)
        shutdown.start()
        shutdown.join(CLOSE_TIMEOUT_S)
        if shutdown.is_alive():
            self._exporter.shutdown()  # ends its retries


def _otlp_exporter() -> "SpanExporter":
    module = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    exporter: SpanExporter = module.OTLPSpanExporter()
    return exporter
