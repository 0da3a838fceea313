"""Compares tables with their topics, without the service that keeps them."""

from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.tables.building import TableStores, table_factory
from barnabas.tables.settings import TableSettings
from barnabas.tables.source import TopicSource
from barnabas.tables.table import TopicIdentity


class TableReport(NamedTuple):
    """A table beside its topic."""

    topic: str
    format: str
    location: str
    version: str = ""  #: version of Delta, snapshot id of Iceberg; empty if there is no table
    rows_count: int = 0
    files_count: int = 0
    size_bytes: int = 0
    missing_offsets_count: int = (
        0  #: offsets of the topic that the table does not have, transaction markers included
    )
    committed_ms: int | None = None  #: the time of the last commit
    error: str = ""


def report_table(
    settings: TableSettings, stores: TableStores, source: TopicSource, clock: Clock
) -> TableReport:
    """Read a table and the offsets of its topic; what fails is in the report."""
    report = TableReport(settings.topic, settings.format.value, str(settings.location))
    try:
        return _filled(report, settings, stores, source, clock)
    except Exception as error:  # of Kafka, of the store, of the libraries for tables
        return report._replace(error=stores.describe(error))


def _filled(
    report: TableReport, settings: TableSettings, stores: TableStores, source: TopicSource, clock: Clock
) -> TableReport:
    partitions = source.partitions(settings.topic)
    identity = TopicIdentity(settings.topic, next(iter(partitions.values())))
    table = table_factory(settings).open(stores.access(settings, identity, clock))
    known = {} if table is None else table.next_offsets([tp.partition for tp in partitions])
    bounds = source.bounds(partitions)
    missing = sum(
        max(0, bounds[tp].end - max(known.get(tp.partition, 0), bounds[tp].start)) for tp in partitions
    )
    report = report._replace(missing_offsets_count=missing)
    if table is None:
        return report
    files, summary = table.files(), table.summary()
    return report._replace(
        version=summary.version,
        rows_count=sum(file.rows_count for file in files),
        files_count=len(files),
        size_bytes=sum(file.size_bytes for file in files),
        committed_ms=summary.committed_ms,
    )
