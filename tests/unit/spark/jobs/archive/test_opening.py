from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.objects.location import LocationError, ObjectLocation
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from pyspark_barnabas.jobs.archive.delta_object_target import DeltaObjectTarget
from pyspark_barnabas.jobs.archive.manifest import ArchiveError
from pyspark_barnabas.jobs.archive.object_target import ObjectTarget
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from support.object_server import ObjectServer, object_server


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with object_server() as running:
        running.create_bucket("archives")
        yield running


def test_the_location_decides_how_runs_become_visible(tmp_path: Path, server: ObjectServer) -> None:
    location = ObjectLocation("s3", "archives", "new")
    assert isinstance(open_archive(tmp_path), ArchiveTarget)
    for kind, target in (("", ObjectTarget), ("parquet", ObjectTarget), ("delta", DeltaObjectTarget)):
        assert type(open_archive(location, kind, server.settings)) is target


@pytest.mark.parametrize(
    ("key", "kind", "other"),
    [("run=00000001/_manifest.json", "parquet", "delta"), ("_delta_log/0.json", "delta", "parquet")],
)
def test_an_archive_keeps_its_format(server: ObjectServer, key: str, kind: str, other: str) -> None:
    location = ObjectLocation("s3", "archives", kind)
    open_store(location, server.settings).write(key, [b""])
    assert type(open_archive(location, "", server.settings)) is type(
        open_archive(location, kind, server.settings)
    )
    with pytest.raises(ArchiveError, match=f"{location} is an archive in the format {kind}, not {other}"):
        open_archive(location, other, server.settings)


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="unknown archive format 'csv': expected parquet or delta"):
        open_archive(tmp_path, "csv")


def test_settings_of_stores_do_not_apply_to_directories(tmp_path: Path) -> None:
    with pytest.raises(LocationError, match="store options apply only to object stores"):
        open_archive(tmp_path, settings=StoreSettings({"aws_region": "x"}))
