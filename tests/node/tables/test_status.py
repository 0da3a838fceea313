"""Tables beside their topics."""

from pathlib import Path

from barnabas.base.clock import SystemClock
from barnabas.tables.building import TableStores
from barnabas.tables.settings import TableFormat
from barnabas.tables.status import report_table
from barnabas.testing import EmbeddedBroker
from support.tables import advance, settings_of, topic_source, topic_table


def test_a_table_that_is_damaged_is_reported_with_the_reason(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    """The reports of other tables are not lost."""
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "t")
    broker.produce(topic, "0", partition=0)
    advance(topic_table(settings), broker.bootstrap)
    for path in (tmp_path / "t/_delta_log").glob("*.json"):
        path.write_text("{")
    with topic_source(broker.bootstrap) as source:
        report = report_table(settings, TableStores(), source, SystemClock())
    assert report.error.startswith("DeltaError: ")
    assert report.rows_count == 0
