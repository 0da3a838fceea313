import threading
import uuid
from importlib import import_module

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from barnabas.base.clock import ManualClock
from barnabas.telemetry import tracing
from barnabas.telemetry.tracing import Tracer

NOW_MS = 1_700_000_000_000


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    tracer = Tracer.opentelemetry(exporter, ManualClock(NOW_MS))
    yield tracer
    tracer.close()


def spans_of(tracer, exporter):
    tracer.close()
    return exporter.get_finished_spans()


class ListSink:
    def __init__(self):
        self.spans = []
        self.closed = 0

    def begin(self, name, started_ns, parent):
        return name, started_ns

    def end(self, span, ended_ns, attributes):
        self.spans.append((*span, ended_ns, attributes))

    def close(self):
        self.closed += 1


def test_a_span_has_its_name_and_attributes(tracer, exporter):
    attributes = {"topic": "t", "partition": 0, "record_count": 3, "base_offset": 40, "auto_create": True}
    tracer.record("barnabas.produce.append", tracer.now_ns(), None, **attributes)
    (span,) = spans_of(tracer, exporter)
    assert span.name == "barnabas.produce.append"
    assert dict(span.attributes) == attributes


def test_a_span_lasts_from_its_start_to_its_record_on_the_wall_clock(tracer, exporter):
    before_ns = tracer.now_ns()
    started_ns = tracer.now_ns()
    tracer.record("span", started_ns, None)
    spent_ns = tracer.now_ns() - before_ns
    (span,) = spans_of(tracer, exporter)
    assert 0 <= span.end_time - span.start_time <= spent_ns
    assert 0 <= span.start_time - NOW_MS * 1_000_000 < 60_000_000_000


def test_child_spans_belong_to_the_requests_span(tracer, exporter):
    request, other = tracer.begin("Produce"), tracer.begin("Fetch")
    tracer.record("barnabas.produce.append", tracer.now_ns(), request)
    tracer.end(other)
    tracer.end(request, client_id=None, api_version=12)
    append, fetch, produce = spans_of(tracer, exporter)
    assert append.parent.span_id == produce.context.span_id
    assert append.context.trace_id == produce.context.trace_id != fetch.context.trace_id
    assert produce.parent is None
    assert (produce.kind, append.kind) == (SpanKind.SERVER, SpanKind.INTERNAL)
    assert dict(produce.attributes) == {"api_version": 12}


def test_an_attribute_without_a_value_is_omitted_and_an_unusual_one_is_text(tracer, exporter):
    topic_id = uuid.UUID(int=5)
    tracer.record("span", tracer.now_ns(), None, topic_id=topic_id, high_watermark=None)
    (span,) = spans_of(tracer, exporter)
    assert dict(span.attributes) == {"topic_id": str(topic_id)}


def test_attributes_may_be_called_name_and_started_ns():
    sink = ListSink()
    Tracer(sink, lambda: 9).record("span", 4, None, name="n", started_ns=1)
    assert sink.spans == [("span", 4, 9, {"name": "n", "started_ns": 1})]


def test_spans_have_the_service_name(tracer, exporter):
    tracer.record("span", tracer.now_ns(), None)
    assert spans_of(tracer, exporter)[0].resource.attributes["service.name"] == "barnabas"


def test_the_service_name_comes_from_opentelemetrys_variable(exporter, monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders-kafka")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    tracer = Tracer.opentelemetry(exporter)
    tracer.record("span", tracer.now_ns(), None)
    attributes = spans_of(tracer, exporter)[0].resource.attributes
    assert attributes["service.name"] == "orders-kafka"
    assert attributes["deployment.environment"] == "test"


def test_a_disabled_tracer_reports_it_and_does_nothing():
    tracer = Tracer.disabled()
    assert not tracer.enabled
    tracer.record("span", tracer.now_ns(), None, topic="t")
    tracer.end(tracer.begin("Produce"), client_id="c")
    tracer.close()


def test_a_tracer_exports_pending_spans_when_it_closes_and_accepts_no_more(tracer, exporter):
    assert tracer.enabled
    tracer.record("first", tracer.now_ns(), None)
    tracer.close()
    tracer.record("second", tracer.now_ns(), None)
    assert [span.name for span in exporter.get_finished_spans()] == ["first"]
    assert not tracer.enabled


def test_a_tracer_closes_its_sink_once():
    sink = ListSink()
    tracer = Tracer(sink)
    tracer.close()
    tracer.close()
    assert sink.closed == 1


class UnreachableExporter(SpanExporter):
    """Retries until it is shut down."""

    def __init__(self):
        self.stopped = threading.Event()

    def export(self, spans):
        self.stopped.wait()
        return SpanExportResult.FAILURE

    def shutdown(self):
        self.stopped.set()


def test_an_unreachable_collector_does_not_delay_the_stop(monkeypatch):
    monkeypatch.setattr(tracing, "CLOSE_TIMEOUT_S", 0.05)
    exporter = UnreachableExporter()
    tracer = Tracer.opentelemetry(exporter)
    tracer.record("span", tracer.now_ns(), None)
    tracer.close()
    assert exporter.stopped.is_set()


def test_the_default_exporter_is_otlp(monkeypatch, exporter):
    asked = []

    class Module:
        @staticmethod
        def OTLPSpanExporter():  # noqa: N802 - OpenTelemetry's name
            return exporter

    monkeypatch.setattr(tracing, "import_module", lambda name: asked.append(name) or Module)
    tracer = Tracer.opentelemetry()
    tracer.record("span", tracer.now_ns(), None)
    assert len(spans_of(tracer, exporter)) == 1
    assert asked == ["opentelemetry.exporter.otlp.proto.http.trace_exporter"]


def test_a_missing_opentelemetry_is_reported_with_a_hint(monkeypatch):
    monkeypatch.setattr(tracing, "import_module", lambda name: import_module("barnabas_has_no_such_module"))
    with pytest.raises(ImportError, match=r"pip install '\.\[tracing\]'"):
        Tracer.opentelemetry()
