"""The partitions in an archive, and the requirements on a topic that keeps restored records."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from pyspark_barnabas.jobs.archive.manifest import ArchiveManifest, PartSum
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from pyspark_barnabas.jobs.restore.job import expected_sums
from pyspark_barnabas.jobs.restore.plan import (
    ArchivedPart,
    Request,
    RestoreError,
    archived_partitions,
    decide_retention,
)

NOW_MS = 1_772_366_400_000  #: noon of the first of March 2026
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("retention_ms", "policy", "oldest"),
    [
        (-1, "delete", "1970-01-01"),
        (7 * DAY_MS, "compact", "1970-01-01"),
        (7 * DAY_MS, "delete", "2026-02-23"),
        (7 * DAY_MS, "delete,compact", "2026-03-01"),
    ],
)
def test_records_that_the_topic_keeps_can_be_restored(retention_ms: int, policy: str, oldest: str) -> None:
    decide_retention("orders", {"retention.ms": str(retention_ms), "cleanup.policy": policy}, oldest, NOW_MS)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_records_that_the_topic_would_delete_are_not_restored(policy: str) -> None:
    configs = {"retention.ms": str(7 * DAY_MS), "cleanup.policy": policy}
    with pytest.raises(RestoreError, match=r"archived records are of 2026-02-22: they would be removed"):
        decide_retention("orders", configs, "2026-02-22", NOW_MS)


ORDERS, EMPTY, CLICKS = (TopicPartition(*each) for each in (("orders", 0), ("orders", 1), ("clicks", 0)))


def archive_of_two_runs(directory: Path) -> ArchiveTarget:
    """Partition 1 of orders never had a record, and clicks appears in the second run."""
    target = ArchiveTarget(directory)
    day, next_day = "2026-03-01", "2026-03-02"
    runs = [
        ({ORDERS: 5}, {ORDERS: 20, EMPTY: 7}, [PartSum("orders", day, 0, 10, (1 << 64) - 1, 5, 18)]),
        (
            {ORDERS: 20, CLICKS: 0},
            {ORDERS: 30, EMPTY: 7, CLICKS: 2},
            [
                PartSum("orders", day, 0, 1, 3, 20, 20),
                PartSum("orders", next_day, 0, 2, 4, 21, 28),
                PartSum("clicks", next_day, 0, 2, 5, 0, 1),
            ],
        ),
    ]
    for number, (starts, ends, sums) in enumerate(runs, 1):
        staged = target.staging(number)
        staged.mkdir(parents=True)
        target.commit(ArchiveManifest(number, "read_committed", {}, starts, ends, tuple(sums)), staged)
    return target


def test_a_partitions_range_is_from_its_first_run_to_its_last(tmp_path: Path) -> None:
    target = archive_of_two_runs(tmp_path)
    orders = [ArchivedPart("orders", 0, 5, 30, 13), ArchivedPart("orders", 1, 7, 7, 0)]
    assert archived_partitions(target, []) == [ArchivedPart("clicks", 0, 0, 2, 2), *orders]
    assert archived_partitions(target, ["orders"]) == orders
    with pytest.raises(RestoreError, match="does not contain topic 'views'; it contains: clicks, orders"):
        archived_partitions(target, ["orders", "views"])


def test_checksums_of_runs_are_added_up_under_the_target_name(tmp_path: Path) -> None:
    target = archive_of_two_runs(tmp_path)
    assert expected_sums(target, Request({}, tmp_path, ["orders"], "again")) == {
        ("again", "2026-03-01", 0): (11, 2),
        ("again", "2026-03-02", 0): (2, 4),
    }


def test_an_archives_format_is_detected(tmp_path: Path) -> None:
    archive_of_two_runs(tmp_path / "parquet")
    assert type(open_archive(tmp_path / "parquet")) is type(open_archive(tmp_path / "new")) is ArchiveTarget
    with pytest.raises(ValueError, match="is an archive in the format parquet, not delta"):
        open_archive(tmp_path / "parquet", "delta")
    with pytest.raises(ValueError, match="unknown archive format 'csv': expected parquet or delta"):
        open_archive(tmp_path / "new", "csv")
