"""Every batch of logs, in files or over the wire, checked by Spark's tasks; a report of what is damaged, and where."""

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
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.common.client import connected
from pyspark_barnabas.jobs.common.session import distribute, progress
from pyspark_barnabas.jobs.scrub.batch_checks import Finding, Scrubbed
from pyspark_barnabas.jobs.scrub.fetched import scrub_fetched
from pyspark_barnabas.jobs.scrub.files import scrub_partition
from pyspark_barnabas.source.file_offset_reader import find_directories
from pyspark_barnabas.source.options import SourceOptions, Transport, batch_options
from pyspark_barnabas.source.range_splitting import OffsetRange
from pyspark_barnabas.source.task_planner import open_logs
from pyspark_barnabas.source.tasks import open_reader

_TASKS_PER_CORE = 4
_POLICY = "cleanup.policy"
#: What a broker has not given by then is missing.
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
    """What is to be checked: all batches before `end`; in files those behind, too, as far as they are whole."""

    place: TopicPartition
    directory: Path | None  #: None: asked of the brokers
    end: int
    size_bytes: int  #: over the wire an estimate
    topic_id: bytes = ZERO_UUID
    is_compacted: bool = False  #: told of what the brokers are asked for alone


@dataclass(frozen=True)
class ScrubReport:
    """What was found; or, after a dry run, what would be looked at."""

    wanted: tuple[ScrubPart, ...]
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
    """Check the topics that the source's own options select: their files where there are `logDirs`, else by Fetch.

    A dry run needs no session.

    :param allow_gaps: Take missing offsets for a cleaner's work, whatever checkpoints and configurations say.
    :raises OptionError: For an option that cannot be, or when nobody tells how far the logs reach.
    """
    parsed = scrub_options(options)
    wanted = plan_scrub(parsed, allow_gaps=allow_gaps)
    if spark is None or dry_run or not wanted:
        return ScrubReport(tuple(wanted), (), dry_run=dry_run)
    cores = int(spark.conf.get("spark.default.parallelism", None) or spark.sparkContext.defaultParallelism)
    tasks = distribute(wanted, lambda each: each.size_bytes, _TASKS_PER_CORE * cores)
    work = partial(_scrub_tasks, tasks, parsed, allow_gaps)
    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, _ROWS_DDL)
    with progress(spark, "scrubbing"):
        rows = frame.toArrow().to_pylist()
    for row in rows:
        row["findings"] = [Finding(**each) for each in row["findings"]]
    found = sorted((Scrubbed(**row) for row in rows), key=lambda each: (each.topic, each.partition))
    return ScrubReport(tuple(wanted), tuple(found))


def scrub_options(options: Mapping[str, str]) -> SourceOptions:
    """The source's options with what a scrub needs.

    :raises OptionError: For one that cannot be.
    """
    has_files = "logdirs" in {name.lower() for name in options}
    given = {"kafkaConsumer.pollTimeoutMs": _POLL_TIMEOUT_MS, **options, "failOnDataLoss": "false"}
    return batch_options({**given, "transport": "files" if has_files else "fetch"})


def plan_scrub(options: SourceOptions, *, allow_gaps: bool = False) -> list[ScrubPart]:
    """The partitions that there are, and how far each may be relied on: its high watermark."""
    with closing(open_logs(options)) as logs:
        places = logs.partitions(options.selection)
        ends = logs.offsets(dict.fromkeys(places, LATEST))
        if options.transport is Transport.FETCH:
            starts = logs.offsets(dict.fromkeys(places, EARLIEST))
            ranges = [OffsetRange(place, starts[place], ends[place]) for place in places]
            rates = logs.record_bytes([each for each in ranges if each.offsets_count > 0])
    if options.transport is Transport.FETCH:
        compacted = set() if allow_gaps else _compacted(options, {place.topic for place in places})
        return [
            ScrubPart(
                place,
                None,
                high,
                int(rates.get(place, 0) * (high - low)),
                places[place],
                allow_gaps or place.topic in compacted,
            )
            for place, low, high in sorted(ranges)
        ]
    directories = find_directories(options.log_dirs)
    return [
        ScrubPart(place, directories[place], ends[place], _size_bytes(directories[place]))
        for place in sorted(places)
        if place in directories
    ]


def _size_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob(f"*{LOG_SUFFIX}"))


def _compacted(options: SourceOptions, topics: Iterable[str]) -> set[str]:
    """The topics that a cleaner compacts.

    :raises KafkaError: When a broker may not tell.
    """
    resources = [Resource(ResourceKind.TOPIC, topic) for topic in sorted(topics)]
    with closing(connected(options.connection)) as client:
        described = client.admin.describe_configs(resources, [_POLICY])
    found = set()
    for resource, entries in described.items():
        if isinstance(entries, KafkaError):
            raise entries
        if any(each.name == _POLICY and "compact" in (each.value or "") for each in entries):
            found.add(resource.name)
    return found


def _scrub_tasks(
    tasks: Sequence[Sequence[ScrubPart]],
    options: SourceOptions,
    allow_gaps: bool,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for part in tasks[number]:
                found = scrub_part(part, options, allow_gaps=allow_gaps)
                row = {**vars(found), "findings": [each._asdict() for each in found.findings]}
                yield pa.RecordBatch.from_pylist([row], _ROWS)


def scrub_part(part: ScrubPart, options: SourceOptions, *, allow_gaps: bool = False) -> Scrubbed:
    """Check one partition."""
    place = part.place
    if part.directory is not None:
        return scrub_partition(place, part.directory, part.end, allow_gaps=allow_gaps, pause=time.sleep)
    with closing(open_logs(options)) as logs, closing(open_reader(options)) as reader:
        return scrub_fetched(
            reader,
            place,
            part.topic_id,
            lambda: logs.offsets({place: EARLIEST})[place],
            part.end,
            may_lack=part.is_compacted,
        )
