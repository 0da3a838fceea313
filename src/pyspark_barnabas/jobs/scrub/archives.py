"""Check archives: the files of object stores byte by byte, the records of directories by their sums."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from barnabas.base.plurals import plural
from barnabas.objects.location import Location, ObjectLocation
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectNotFound, ObjectStore
from pyspark_barnabas.jobs.archive.job import sums_of
from pyspark_barnabas.jobs.archive.manifest import ArchivedFile, ArchiveError, PartSum
from pyspark_barnabas.jobs.archive.object_files import errors_for_users
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.archive.snapshot import ArchiveSnapshot
from pyspark_barnabas.jobs.common.session import distribute, progress

MISSING, CUT, CHANGED, RECORDS = "missing", "cut", "changed", "records"
_TASKS_PER_CORE = 4
_READ_BYTES = 4 << 20
_FINDINGS = pa.schema([(name, pa.string()) for name in ("kind", "topic", "date", "file", "what")])
_FINDINGS_DDL = "kind string, topic string, date string, file string, what string"


class ArchiveFinding(NamedTuple):
    """Damage of a file, or in a directory of the records of a topic and day, where `file` is empty."""

    kind: str
    topic: str
    date: str
    file: str
    what: str


@dataclass(frozen=True)
class ArchiveReport:
    """What was checked, and the damage; after a dry run what would be checked."""

    runs_count: int
    files_count: int  #: 0 in a directory, where manifests do not list files
    size_bytes: int
    records_count: int
    findings: tuple[ArchiveFinding, ...] = ()
    dry_run: bool = False

    def save(self, directory: Path) -> None:
        """Write `archive.parquet`, one row, and `findings.parquet`."""
        directory.mkdir(parents=True, exist_ok=True)
        row = {name: value for name, value in asdict(self).items() if name not in ("findings", "dry_run")}
        pq.write_table(pa.Table.from_pylist([row]), directory / "archive.parquet")
        rows = [finding._asdict() for finding in self.findings]
        pq.write_table(pa.Table.from_pylist(rows, _FINDINGS), directory / "findings.parquet")


def scrub_archive(
    spark: SparkSession | None,
    location: Location,
    topics: Sequence[str] = (),
    *,
    settings: StoreSettings | None = None,
    dry_run: bool = False,
) -> ArchiveReport:
    """Compare an archive with its manifests. A dry run needs no session.

    :param topics: Topics to check; empty for all.
    :param settings: Of the object store; they precede those of the environment.
    :raises ArchiveError: There is no archive, or a manifest is missing or damaged.
    """
    archive = ArchiveSnapshot(open_archive(location, settings=settings))
    manifests = [archive.manifest(run) for run in archive.runs()]
    if not manifests:
        raise ArchiveError(f"{location} is not an archive: it has no runs")
    listed = [file for manifest in manifests for file in manifest.files or ()]
    files = [file for file in listed if not topics or file.topic in topics]
    sums = [part for manifest in manifests for part in manifest.sums if not topics or part.topic in topics]
    report = ArchiveReport(
        len(manifests),
        len(files),
        sum(file.size_bytes for file in files),
        sum(part.records_count for part in sums),
        dry_run=dry_run,
    )
    if spark is None or dry_run:
        return report
    findings: list[ArchiveFinding] = []
    with progress(spark, "scrubbing"):
        if isinstance(location, ObjectLocation):
            findings += _check_files(spark, location, settings or StoreSettings(), files)
        if isinstance(location, Path) or any(manifest.files is None for manifest in manifests):
            findings += _check_records(spark, archive, topics, _totals(sums))
    return replace(report, findings=tuple(sorted(findings)))


# Object stores


def _check_files(
    spark: SparkSession, location: ObjectLocation, settings: StoreSettings, files: Sequence[ArchivedFile]
) -> list[ArchiveFinding]:
    if not files:
        return []
    tasks = distribute(
        files, lambda file: file.size_bytes, _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    )
    work = partial(_check_tasks, location, settings, tasks)
    rows = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, _FINDINGS_DDL).collect()
    return [ArchiveFinding(*row) for row in rows]


def _check_tasks(
    location: ObjectLocation,
    settings: StoreSettings,
    tasks: Sequence[Sequence[ArchivedFile]],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    with errors_for_users():
        store = open_store(location, settings)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                findings = (check_file(store, file) for file in tasks[number])
                rows = [finding._asdict() for finding in findings if finding is not None]
                yield pa.RecordBatch.from_pylist(rows, _FINDINGS)


def check_file(store: ObjectStore, file: ArchivedFile) -> ArchiveFinding | None:
    """Compare the size and the SHA-256 digest of a file with the manifest."""
    try:
        size_bytes = store.size_bytes(file.key)
        if size_bytes != file.size_bytes:
            kind = CUT if size_bytes < file.size_bytes else CHANGED
            what = f"the file has {size_bytes} bytes, but {file.size_bytes} were archived"
            return ArchiveFinding(kind, file.topic, file.date, file.key, what)
        digest = hashlib.sha256()
        with store.open(file.key) as content:
            while chunk := content.read(_READ_BYTES):
                digest.update(chunk)
    except ObjectNotFound:
        return ArchiveFinding(MISSING, file.topic, file.date, file.key, "the file does not exist")
    if digest.hexdigest() == file.sha256:
        return None
    what = "the SHA-256 digest of the file is not the archived one"
    return ArchiveFinding(CHANGED, file.topic, file.date, file.key, what)


# Directories

_Part = tuple[str, str, int]


def _totals(sums: Iterable[PartSum]) -> dict[_Part, tuple[int, int]]:
    """Return count and checksum of each topic, day and partition, over all runs."""
    totals: defaultdict[_Part, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for part in sums:
        count, checksum = totals[part[:3]]
        totals[part[:3]] = count + part.records_count, (checksum + part.checksum) % (1 << 64)
    return dict(totals)


def _check_records(
    spark: SparkSession,
    archive: ArchiveSnapshot,
    topics: Sequence[str],
    expected: Mapping[_Part, tuple[int, int]],
) -> list[ArchiveFinding]:
    with _unreadable_files_skipped(spark):
        rows = archive.records(spark, topics)
        if topics:
            rows = rows.where(f.col("topic").isin(list(topics)))
        actual = {part[:3]: part[3:5] for part in sums_of(rows)}
    findings = []
    for topic, date, partition in sorted(expected.keys() | actual.keys()):
        count, checksum = actual.get((topic, date, partition), (0, 0))
        archived_count, archived_checksum = expected.get((topic, date, partition), (0, 0))
        if count != archived_count:
            what = f"partition {partition} has {plural(count, 'record')}, but {archived_count} were archived"
        elif checksum != archived_checksum:
            what = f"the checksum of the records of partition {partition} is not the archived one"
        else:
            continue
        findings.append(ArchiveFinding(RECORDS, topic, date, "", what))
    return findings


@contextmanager
def _unreadable_files_skipped(spark: SparkSession) -> Iterator[None]:
    """Skip damaged files, so that their records are reported as missing and do not fail the job."""
    names = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    configured = {name: str(spark.conf.get(name)) for name in names}
    for name in names:
        spark.conf.set(name, "true")
    try:
        yield
    finally:
        for name, value in configured.items():
            spark.conf.set(name, value)
