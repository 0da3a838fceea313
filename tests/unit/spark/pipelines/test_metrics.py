"""Metrics of flows."""

import urllib.request

from pyspark_barnabas.pipelines.metrics import PipelineMetricsServer
from pyspark_barnabas.pipelines.state import FlowState, FlowStatus


def test_each_number_of_a_flow_is_a_gauge_and_unknown_ones_are_omitted() -> None:
    with PipelineMetricsServer(0) as server:
        server.take([FlowStatus("one", FlowState.RUNNING, 3, 10, 7, 2, 1, 5.5, 4), FlowStatus("two")])
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['barnabas_pipeline_running{flow="one"}'] == "1.0"
    assert values['barnabas_pipeline_lag_records{flow="one"}'] == "4.0"
    assert values['barnabas_pipeline_dead_letters{flow="one"}'] == "2.0"
    assert values['barnabas_pipeline_running{flow="two"}'] == "0.0"
    assert 'barnabas_pipeline_batch{flow="two"}' not in values
