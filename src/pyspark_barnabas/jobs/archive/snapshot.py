"""The runs of an archive up to one of them. Runs that are completed later do not change it."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_barnabas.jobs.archive.archive import Archive
from pyspark_barnabas.jobs.archive.manifest import ArchiveError, ArchiveManifest


class ArchiveSnapshot:
    """`Archive` as it was after a run."""

    def __init__(self, archive: Archive, run: int | None = None) -> None:
        """Read the manifests.

        :param run: The last run (default: the newest).
        :raises ArchiveError: There is no such run, or a manifest is missing or damaged.
        """
        runs = archive.runs()
        if run is not None and run not in runs:
            known = f"1 to {len(runs)}" if runs else "none"
            raise ArchiveError(f"run {run} is not in the archive; its runs are: {known}")
        self._archive = archive
        self._manifests = {
            number: archive.manifest(number) for number in runs if run is None or number <= run
        }

    def runs(self) -> Sequence[int]:
        return list(self._manifests)

    def manifest(self, run: int) -> ArchiveManifest:
        return self._manifests[run]

    def records(self, spark: SparkSession, topics: Sequence[str] = ()) -> DataFrame:
        """Later runs have only records at and after the end offsets of this one."""
        newest = self._manifests[max(self._manifests)].ends if self._manifests else {}
        ends = [(*tp, end) for tp, end in newest.items() if not topics or tp.topic in topics]
        bounds = spark.createDataFrame(ends, "topic string, partition int, archive_end bigint")
        rows = self._archive.records(spark, topics).join(f.broadcast(bounds), ["topic", "partition"])
        return rows.where("offset < archive_end").drop("archive_end")
