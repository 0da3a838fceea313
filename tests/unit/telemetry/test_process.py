import os

from prometheus_client.parser import text_string_to_metric_families

from barnabas.telemetry import process
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.telemetry.process import process_metrics


def scrape():
    registry = MetricsRegistry()
    process_metrics(registry)
    families = text_string_to_metric_families(registry.render().decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_resident_memory_is_in_bytes(tmp_path, monkeypatch):
    statm = tmp_path / "statm"
    statm.write_text("9000 250 100 1 0 500 0\n")
    monkeypatch.setattr(process, "_STATM", statm)
    assert scrape()["barnabas_process_resident_memory_bytes"] == 250 * os.sysconf("SC_PAGE_SIZE")


def test_a_system_without_proc_has_no_memory_line_but_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_STATM", tmp_path / "missing")
    assert set(scrape()) == {"barnabas_process_cpu_seconds_total"}


def test_cpu_time_is_user_and_system_time_in_seconds(monkeypatch):
    times = os.times_result((1.5, 0.25, 100.0, 100.0, 100.0))
    monkeypatch.setattr(process.os, "times", lambda: times)
    assert scrape()["barnabas_process_cpu_seconds_total"] == 1.75
