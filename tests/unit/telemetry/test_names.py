import re
from pathlib import Path

import pytest

from barnabas.telemetry import names
from barnabas.telemetry.names import METRICS, MetricName

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


def row(metric):
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |"


def test_the_document_lists_every_metric_in_the_tables_order():
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `barnabas_")]
    assert rows == [row(metric) for metric in METRICS]


def test_the_document_has_no_metric_that_does_not_exist():
    named = set(re.findall(r"\bbarnabas_\w+", DOCUMENT.read_text()))
    suffixes = {f"{names.REQUEST_SECONDS.name}_{suffix}" for suffix in ("bucket", "count", "sum")}
    assert named <= {metric.name for metric in METRICS} | suffixes


def test_every_name_of_the_module_is_in_the_table_once():
    defined = [value for value in vars(names).values() if isinstance(value, MetricName)]
    assert list(METRICS) == defined


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_and_help_texts_follow_the_rules(metric):
    assert re.fullmatch(r"barnabas_[a-z_]+[a-z]", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert re.fullmatch(r"[A-Z][^|\n]+\.", metric.help)
    assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels)
