from pathlib import Path

import pytest

from barnabas.objects.location import LocationError, ObjectLocation
from barnabas.objects.settings import StoreSettings
from pyspark_barnabas.jobs.archive.manifest import ArchiveError
from pyspark_barnabas.jobs.archive.object_target import ObjectTarget
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget

LOCATION = ObjectLocation("s3", "bucket")


def test_the_location_decides_how_runs_become_visible(tmp_path: Path) -> None:
    assert isinstance(open_archive(tmp_path), ArchiveTarget)
    assert isinstance(open_archive(LOCATION, "parquet", StoreSettings()), ObjectTarget)


def test_a_delta_table_needs_a_directory() -> None:
    with pytest.raises(ArchiveError, match="s3://bucket: archives in object stores have the format parquet"):
        open_archive(LOCATION, "delta")


def test_settings_of_stores_do_not_apply_to_directories(tmp_path: Path) -> None:
    with pytest.raises(LocationError, match="store options apply only to object stores"):
        open_archive(tmp_path, settings=StoreSettings({"aws_region": "x"}))
