"""Every batch of log directories checked by Spark's tasks, and a report of what is damaged, and where."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.offsets import LATEST
from barnabas.log.files import LOG_SUFFIX
from pyspark_barnabas.files import find_directories
from pyspark_barnabas.jobs.running import dealt, progress
from pyspark_barnabas.jobs.scrubbing import Finding, Scrubbed, scrub_partition
from pyspark_barnabas.options import batch_options
from pyspark_barnabas.planner import open_logs

_TASKS_PER_CORE = 4

_FINDING_FIELDS = [
    ("kind", pa.string()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("first_offset", pa.int64()),
    ("last_offset", pa.int64()),
    ("file", pa.string()),
    ("position", pa.int64()),
    ("what", pa.string()),
]
_PARTITION_FIELDS = [
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("segments_count", pa.int64()),
    ("batches_count", pa.int64()),
    ("records_count", pa.int64()),
    ("size_bytes", pa.int64()),
    ("first_offset", pa.int64()),
    ("next_offset", pa.int64()),
    ("findings_count", pa.int64()),
]
_FINDINGS = pa.schema(_FINDING_FIELDS)
_PARTITIONS = pa.schema(_PARTITION_FIELDS)
_ROWS = pa.schema([*_PARTITION_FIELDS, ("findings", pa.list_(pa.struct(_FINDING_FIELDS)))])
_FINDING_DDL = (
    "kind string, topic string, partition int, first_offset bigint, last_offset bigint, file string, "
    "position bigint, what string"
)
_ROWS_DDL = (
    "topic string, partition int, segments_count bigint, batches_count bigint, records_count bigint, "
    "size_bytes bigint, first_offset bigint, next_offset bigint, findings_count bigint, "
    f"findings array<struct<{_FINDING_DDL.replace(' ', ':').replace(',:', ',')}>>"
)


class PartitionFiles(NamedTuple):
    """What is to be checked: all batches before `end`, and those behind as far as they are whole."""

    place: TopicPartition
    directory: Path
    end: int
    size_bytes: int


@dataclass(frozen=True)
class ScrubReport:
    """What was found; or, after a dry run, what would be looked at."""

    wanted: tuple[PartitionFiles, ...]
    partitions: tuple[Scrubbed, ...]
    dry_run: bool = False

    @property
    def findings(self) -> list[Finding]:
        """All findings that are listed, by partition and in the order of the files."""
        return [finding for each in self.partitions for finding in each.findings]

    @property
    def findings_count(self) -> int:
        """All findings, those beyond the list included; all is well when there are none."""
        return sum(each.findings_count for each in self.partitions)

    def save(self, directory: Path) -> None:
        """Write `partitions.parquet` and `findings.parquet`."""
        directory.mkdir(parents=True, exist_ok=True)
        rows = [{name: getattr(each, name) for name in _PARTITIONS.names} for each in self.partitions]
        pq.write_table(pa.Table.from_pylist(rows, _PARTITIONS), directory / "partitions.parquet")
        found = [each._asdict() for each in self.findings]
        pq.write_table(pa.Table.from_pylist(found, _FINDINGS), directory / "findings.parquet")


def scrub(
    spark: SparkSession | None, options: Mapping[str, str], *, allow_gaps: bool = False, dry_run: bool = False
) -> ScrubReport:
    """Check the files of the topics that the source's own options select (`transport` is always `files`).

    A dry run needs no session.

    :param allow_gaps: Take missing offsets for the cleaner's work where `cleaner-offset-checkpoint` is lacking.
    :raises OptionError: For an option that cannot be, or when nobody tells how far the logs reach.
    """
    wanted = plan_scrub({**options, "transport": "files"})
    if spark is None or dry_run or not wanted:
        return ScrubReport(tuple(wanted), (), dry_run=dry_run)
    cores = int(spark.conf.get("spark.default.parallelism", None) or spark.sparkContext.defaultParallelism)
    tasks = dealt(wanted, lambda each: each.size_bytes, _TASKS_PER_CORE * cores)
    work = partial(_scrub_tasks, tasks, allow_gaps)
    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, _ROWS_DDL)
    with progress(spark, "scrubbing"):
        rows = frame.toArrow().to_pylist()
    for row in rows:
        row["findings"] = [Finding(**each) for each in row["findings"]]
    found = sorted((Scrubbed(**row) for row in rows), key=lambda each: (each.topic, each.partition))
    return ScrubReport(tuple(wanted), tuple(found))


def plan_scrub(options: Mapping[str, str]) -> list[PartitionFiles]:
    """The partitions that there are, and how far each may be relied on: its high watermark."""
    parsed = batch_options(options)
    with closing(open_logs(parsed)) as logs:
        places = logs.partitions(parsed.selection)
        ends = logs.offsets(dict.fromkeys(places, LATEST))
    directories = find_directories(parsed.log_dirs)
    return [
        PartitionFiles(place, directories[place], ends[place], _size_bytes(directories[place]))
        for place in sorted(places)
        if place in directories
    ]


def _size_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob(f"*{LOG_SUFFIX}"))


def _scrub_tasks(
    tasks: Sequence[Sequence[PartitionFiles]], allow_gaps: bool, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for place, directory, end, _ in tasks[number]:
                found = scrub_partition(place, directory, end, allow_gaps=allow_gaps, pause=time.sleep)
                row = {**vars(found), "findings": [each._asdict() for each in found.findings]}
                yield pa.RecordBatch.from_pylist([row], _ROWS)
