"""Check every batch of logs, in files or over the wire, with Spark tasks, and report damage."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.log.files import LOG_SUFFIX
from barnabas.reading.connection import connected
from barnabas.reading.file_logs import find_directories
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.opening import open_logs, open_reader
from barnabas.reading.options import Transport
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.common.session import distribute, progress
from pyspark_barnabas.jobs.scrub.batch_checks import Finding, Scrubbed
from pyspark_barnabas.jobs.scrub.fetched import scrub_fetched
from pyspark_barnabas.jobs.scrub.files import scrub_partition
from pyspark_barnabas.source.options import SourceOptions, batch_options
from pyspark_barnabas.source.task_planner import task_options

_TASKS_PER_CORE = 4
_POLICY = "cleanup.policy"
#: Records that a broker has not returned within this time count as missing.
_POLL_TIMEOUT_MS = "15000"

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


class ScrubPart(NamedTuple):
    """A partition to check: all batches before `end`, and in files also complete batches after it."""

    tp: TopicPartition
    directory: Path | None  #: None if it is read from the brokers
    end: int
    size_bytes: int  #: an estimate if it is read over the wire
    topic_id: bytes = ZERO_UUID
    is_compacted: bool = False  #: set only if it is read over the wire


@dataclass(frozen=True)
class ScrubReport:
    """Findings of a run; after a dry run only the partitions that would be checked."""

    wanted: tuple[ScrubPart, ...]
    partitions: tuple[Scrubbed, ...]
    dry_run: bool = False

    @property
    def findings(self) -> list[Finding]:
        """All listed findings, by partition and in the order of the files."""
        return [finding for scrubbed in self.partitions for finding in scrubbed.findings]

    @property
    def findings_count(self) -> int:
        """Number of all findings, including those that are not listed; 0 if there is no damage."""
        return sum(scrubbed.findings_count for scrubbed in self.partitions)

    def save(self, directory: Path) -> None:
        """Write `partitions.parquet` and `findings.parquet`."""
        directory.mkdir(parents=True, exist_ok=True)
        rows = [{name: getattr(scrubbed, name) for name in _PARTITIONS.names} for scrubbed in self.partitions]
        pq.write_table(pa.Table.from_pylist(rows, _PARTITIONS), directory / "partitions.parquet")
        findings = [finding._asdict() for finding in self.findings]
        pq.write_table(pa.Table.from_pylist(findings, _FINDINGS), directory / "findings.parquet")


def scrub(
    spark: SparkSession | None, options: Mapping[str, str], *, allow_gaps: bool = False, dry_run: bool = False
) -> ScrubReport:
    """Check the topics that the source's options select: their files if `logDirs` is set, else over Fetch requests.

    A dry run needs no session.

    :param allow_gaps: Treat missing offsets as the result of compaction, whatever checkpoints and configs say.
    :raises OptionError: An option is not valid, or the end offsets of the logs cannot be determined.
    """
    parsed = scrub_options(options)
    parts = plan_scrub(parsed, allow_gaps=allow_gaps)
    if spark is None or dry_run or not parts:
        return ScrubReport(tuple(parts), (), dry_run=dry_run)
    cores = int(spark.conf.get("spark.default.parallelism", None) or spark.sparkContext.defaultParallelism)
    tasks = distribute(parts, lambda part: part.size_bytes, _TASKS_PER_CORE * cores)
    work = partial(_scrub_tasks, tasks, task_options(parsed), allow_gaps)
    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, _ROWS_DDL)
    with progress(spark, "scrubbing"):
        rows = frame.toArrow().to_pylist()
    for row in rows:
        row["findings"] = [Finding(**finding) for finding in row["findings"]]
    partitions = sorted(
        (Scrubbed(**row) for row in rows), key=lambda scrubbed: (scrubbed.topic, scrubbed.partition)
    )
    return ScrubReport(tuple(parts), tuple(partitions))


def scrub_options(options: Mapping[str, str]) -> SourceOptions:
    """Parse the source's options with the settings that a scrub needs.

    :raises OptionError: An option is not valid.
    """
    has_files = "logdirs" in {name.lower() for name in options}
    source_options = {"kafkaConsumer.pollTimeoutMs": _POLL_TIMEOUT_MS, **options, "failOnDataLoss": "false"}
    return batch_options({**source_options, "transport": "files" if has_files else "fetch"})


def plan_scrub(options: SourceOptions, *, allow_gaps: bool = False) -> list[ScrubPart]:
    """Return the partitions to check, each up to its high watermark."""
    with closing(open_logs(options)) as logs:
        topic_ids = logs.partitions(options.selection)
        ends = logs.offsets(dict.fromkeys(topic_ids, LATEST))
        if options.transport is Transport.FETCH:
            starts = logs.offsets(dict.fromkeys(topic_ids, EARLIEST))
            ranges = [OffsetRange(tp, starts[tp], ends[tp]) for tp in topic_ids]
            rates = logs.record_bytes(
                [offset_range for offset_range in ranges if offset_range.offsets_count > 0]
            )
    if options.transport is Transport.FETCH:
        compacted = set() if allow_gaps else _compacted(options, {tp.topic for tp in topic_ids})
        return [
            ScrubPart(
                tp,
                None,
                high,
                int(rates.get(tp, 0) * (high - low)),
                topic_ids[tp],
                allow_gaps or tp.topic in compacted,
            )
            for tp, low, high in sorted(ranges)
        ]
    directories = find_directories(options.log_dirs)
    return [
        ScrubPart(tp, directories[tp], ends[tp], _size_bytes(directories[tp]))
        for tp in sorted(topic_ids)
        if tp in directories
    ]


def _size_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob(f"*{LOG_SUFFIX}"))


def _compacted(options: SourceOptions, topics: Iterable[str]) -> set[str]:
    """Return the topics whose cleanup.policy includes compact.

    :raises KafkaError: Describing the configs failed.
    """
    resources = [Resource(ResourceKind.TOPIC, topic) for topic in sorted(topics)]
    with closing(connected(options.connection)) as client:
        described = client.admin.describe_configs(resources, [_POLICY])
    compacted = set()
    for resource, entries in described.items():
        if isinstance(entries, KafkaError):
            raise entries
        if any(entry.name == _POLICY and "compact" in (entry.value or "") for entry in entries):
            compacted.add(resource.name)
    return compacted


def _scrub_tasks(
    tasks: Sequence[Sequence[ScrubPart]],
    options: SourceOptions,
    allow_gaps: bool,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for part in tasks[number]:
                scrubbed = scrub_part(part, options, allow_gaps=allow_gaps)
                row = {**vars(scrubbed), "findings": [finding._asdict() for finding in scrubbed.findings]}
                yield pa.RecordBatch.from_pylist([row], _ROWS)


def scrub_part(part: ScrubPart, options: SourceOptions, *, allow_gaps: bool = False) -> Scrubbed:
    """Check one partition, in its directory or over the wire."""
    tp = part.tp
    if part.directory is not None:
        return scrub_partition(tp, part.directory, part.end, allow_gaps=allow_gaps, pause=time.sleep)
    with closing(open_logs(options)) as logs, closing(open_reader(options)) as reader:
        return scrub_fetched(
            reader,
            tp,
            part.topic_id,
            lambda: logs.offsets({tp: EARLIEST})[tp],
            part.end,
            allow_gaps=part.is_compacted,
        )
