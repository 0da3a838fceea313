"""Metrics of tables are documented, and have the values of the statuses."""

import re
import urllib.request
from pathlib import Path

from barnabas.tables.metrics import TableCollector, metrics_server
from barnabas.tables.service import TableStatus
from barnabas.tables.topic_table import TableStatistics

PAGE = Path(__file__).parents[3] / "docs" / "tables.md"


def test_every_metric_is_in_the_documentation() -> None:
    documented = set(re.findall(r"`(barnabas_table_\w+)`", PAGE.read_text(encoding="utf-8")))
    collected = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in TableCollector(list).collect()
    }
    assert documented == collected


def test_a_scrape_has_each_table() -> None:
    counts = TableStatistics(rows_count=5)
    statuses = [
        TableStatus("orders", "delta", "/t", "waiting", "", 1_500, counts),
        TableStatus("broken", "", "", "failed", "why", None, TableStatistics()),
    ]
    with (
        metrics_server("127.0.0.1", 0, lambda: statuses) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response,
    ):
        lines = response.read().decode().splitlines()
    assert 'barnabas_table_rows_total{topic="orders"} 5.0' in lines
    assert 'barnabas_table_lag_seconds{topic="orders"} 1.5' in lines
    assert 'barnabas_table_failed{topic="broken"} 1.0' in lines
    assert not any(line.startswith('barnabas_table_lag_seconds{topic="broken"}') for line in lines)
