"""Read the results from the table and the topics, and render them as one HTML file."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable
from examples.orders.totals import Totals, Window
from pyspark.sql import DataFrame, SparkSession

from barnabas.reports.document import (
    Series,
    columns,
    count_text,
    heading,
    lines,
    page,
    paragraph,
    ranking,
    table,
)

#: Short reasons of dead letters, by the beginning of the full reason.
_REASONS = {
    "the value is not UTF-8": "not UTF-8",
    "the value is not JSON": "not JSON",
    "expectation paid": "paid",
    "expectation in_time": "in_time",
}


def found(spark: SparkSession, bootstrap: str, home: Path) -> Totals:
    """Read the results."""
    events = DeltaTable(home / "tables" / "events").to_pyarrow_table(columns=["kind"])
    kinds = {row["values"]: row["counts"] for row in pc.value_counts(events["kind"]).to_pylist()}
    letters = _topic(spark, bootstrap, "shop-dead").selectExpr("CAST(headers[0].value AS STRING) AS reason")
    dead: dict[str, int] = {}
    for row in letters.groupBy("reason").count().collect():
        [word] = [word for prefix, word in _REASONS.items() if row["reason"].startswith(prefix)]
        dead[word] = dead.get(word, 0) + row["count"]
    values = _topic(spark, bootstrap, "shop-windows").select("value").collect()
    windows = [json.loads(row["value"]) for row in values]
    sales = [
        json.loads(row["value"]) for row in _topic(spark, bootstrap, "shop-sales").select("value").collect()
    ]
    sales.sort(key=lambda each: each["orders"])  # totals grow, so the last one of each item counts
    assert len({each["start"] for each in windows}) == len(windows), "each window is written once"
    return Totals(
        kinds,
        dead,
        {each["start"]: Window(each["orders"], each["clicks"], each["cents"]) for each in windows},
        {each["item"]: each["cents"] for each in sales},
    )


def _topic(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true"}
    reader = spark.read.format("barnabas").options(**options)
    return reader.option("kafka.isolation.level", "read_committed").load()


def html(totals: Totals, count: int) -> str:
    starts = sorted(totals.windows)
    windows = [totals.windows[start] for start in starts]
    bought = sorted(totals.items.items(), key=lambda each: -each[1])
    parts = [
        heading("Events over the day"),
        columns(
            "Events in each quarter of an hour",
            starts,
            [
                Series("orders", [each.orders for each in windows]),
                Series("clicks", [each.clicks for each in windows]),
            ],
        ),
        lines("Sales in each quarter of an hour", starts, [Series("", _euros(windows))], _money),
        heading("Sales by item"),
        ranking("Sales by item", [(item, cents / 100) for item, cents in bought], _money),
        heading("Dead letters"),
        paragraph(f"{sum(totals.dead.values())} of {count} events are dead letters, each with its reason."),
        ranking("Dead letters by reason", sorted(totals.dead.items())),
        heading("The cleaned table"),
        table(["kind", "rows"], sorted(totals.rows.items())),
    ]
    return page("A day of the shop", f"{count} events, through a topic and a Delta table", parts)


def _euros(windows: Sequence[Window]) -> list[float]:
    return [each.cents / 100 for each in windows]


def _money(value: float) -> str:
    return f"{count_text(value)} €"
