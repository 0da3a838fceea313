"""Spans: the operations of a request and their durations. Disabled by default; exported by OpenTelemetry."""

import time
from collections.abc import Callable
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.base.clock import Clock, SystemClock

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span as OpenTelemetrySpan
    from opentelemetry.trace import Tracer as OpenTelemetryTracer

_MISSING = "tracing needs OpenTelemetry, which is not installed: `pip install '.[tracing]'` in a checkout of Barnabas"

#: Time by which an unresponsive collector may delay the broker's stop.
CLOSE_TIMEOUT_S = 0.5


#: An open span of a sink, for `Tracer.end` and as a parent.
Span = Any


class SpanSink(Protocol):
    """The destination of spans. Times are nanoseconds of the tracer's clock."""

    def begin(self, name: str, started_ns: int, parent: Span | None) -> Span:
        """Open a span; one without a parent is a client's request."""
        ...

    def end(self, span: Span, ended_ns: int, attributes: dict[str, object]) -> None:
        """Receive a finished span."""
        ...

    def close(self) -> None:
        """Send pending spans, and stop."""
        ...


class Tracer:
    """Creates spans of requests, with `begin` and `end`, and child spans of their operations.

    Child spans are recorded afterwards: `started_ns = tracer.now_ns()`, the work, `tracer.record(name, started_ns,
    ...)`.
    On hot paths check `enabled` first, which saves collecting the attributes.
    """

    def __init__(self, sink: SpanSink | None, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self.enabled = sink is not None
        self.now_ns = clock_ns  #: nanoseconds since an arbitrary point
        self._sink = sink

    @classmethod
    def disabled(cls) -> "Tracer":
        """Return a tracer that does nothing."""
        return cls(None)

    @classmethod
    def opentelemetry(cls, exporter: "SpanExporter | None" = None, clock: Clock | None = None) -> "Tracer":
        """Return a tracer that exports by OpenTelemetry's SDK, from its own thread.

        The default exporter is OTLP over HTTP, configured by OpenTelemetry's own environment
        variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME ...).

        :raises ImportError: When OpenTelemetry is not installed; the message says how to install it.
        """
        clock_ns = time.perf_counter_ns
        epoch_ns = (clock or SystemClock()).wall_ms() * 1_000_000 - clock_ns()
        try:
            return cls(_OpenTelemetrySink(exporter or _otlp_exporter(), epoch_ns), clock_ns)
        except ModuleNotFoundError as error:
            raise ImportError(_MISSING) from error

    def begin(self, name: str, /) -> Span | None:
        """Open the span of a request; None when tracing is disabled."""
        return None if self._sink is None else self._sink.begin(name, self.now_ns(), None)

    def end(self, span: Span | None, /, **attributes: object) -> None:
        """Finish a span.

        Attributes that are None are left out; values other than text, numbers and booleans are written as text.
        """
        if self._sink is not None and span is not None:
            self._sink.end(span, self.now_ns(), attributes)

    def record(self, name: str, started_ns: int, parent: Span | None, /, **attributes: object) -> None:
        """Record a child span from `started_ns` (from `now_ns`) until now."""
        if self._sink is not None:
            self._sink.end(self._sink.begin(name, started_ns, parent), self.now_ns(), attributes)

    def close(self) -> None:
        """Export pending spans, for half a second at most, and stop."""
        sink, self._sink = self._sink, None
        self.enabled = False
        if sink is not None:
            sink.close()


class _OpenTelemetrySink:
    """Passes spans to OpenTelemetry's SDK and its batching exporter."""

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

    def begin(self, name: str, started_ns: int, parent: "OpenTelemetrySpan | None") -> "OpenTelemetrySpan":
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        return self._tracer.start_span(
            name,
            context=Context() if parent is None else set_span_in_context(parent, Context()),
            kind=SpanKind.SERVER if parent is None else SpanKind.INTERNAL,
            start_time=self._epoch_ns + started_ns,
        )

    def end(self, span: "OpenTelemetrySpan", ended_ns: int, attributes: dict[str, object]) -> None:
        for key, value in attributes.items():
            if value is not None:
                span.set_attribute(key, value if isinstance(value, str | bool | int | float) else str(value))
        span.end(self._epoch_ns + ended_ns)

    def close(self) -> None:
        """Export pending spans and stop the exporting thread; give up after `CLOSE_TIMEOUT_S`."""
        shutdown = Thread(target=self._provider.shutdown, name="tracing-shutdown", daemon=True)
        shutdown.start()
        shutdown.join(CLOSE_TIMEOUT_S)
        if shutdown.is_alive():
            self._exporter.shutdown()  # ends its retries


def _otlp_exporter() -> "SpanExporter":
    module = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    exporter: SpanExporter = module.OTLPSpanExporter()
    return exporter
