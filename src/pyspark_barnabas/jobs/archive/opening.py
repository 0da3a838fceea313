"""Open archives at locations, in the format that they have."""

from pathlib import Path
from typing import Any

from barnabas.objects.location import Location, ObjectLocation
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectStore
from pyspark_barnabas.jobs.archive.archive import WritableArchive
from pyspark_barnabas.jobs.archive.manifest import ArchiveError
from pyspark_barnabas.jobs.archive.object_target import ObjectTarget
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from pyspark_barnabas.paths import table_flaw


def open_archive(
    location: Location, kind: str = "", settings: StoreSettings | None = None
) -> WritableArchive[Any]:
    """Open the archive at a location in its own format; a new one gets the format `kind` (default: parquet).

    :raises ArchiveError: `kind` is unknown or differs from the archive's format, or the path is not valid for a table.
    :raises LocationError: `settings` are not valid for the location.
    """
    if kind not in ("", "parquet", "delta"):
        raise ArchiveError(f"unknown archive format '{kind}': expected parquet or delta")
    store = open_store(location, settings)
    if isinstance(location, Path):
        return _open_directory(location, kind)
    return _open_objects(location, kind, settings or StoreSettings(), store)


def _open_objects(
    location: ObjectLocation, kind: str, settings: StoreSettings, store: ObjectStore
) -> ObjectTarget:
    directories = store.directories()
    if directories & {"_delta_log", "_barnabas"}:
        actual_kind = "delta"
    elif any(name.startswith("run=") for name in directories):
        actual_kind = "parquet"
    else:
        actual_kind = kind or "parquet"
    _check_kind(location, kind, actual_kind)
    if actual_kind == "parquet":
        return ObjectTarget(location, settings, store)
    from pyspark_barnabas.jobs.archive.delta_object_target import DeltaObjectTarget  # delta-rs is optional

    return DeltaObjectTarget(location, settings, store)


def _open_directory(directory: Path, kind: str) -> ArchiveTarget:
    if (directory / "_delta_log").is_dir():
        actual_kind = "delta"
    elif ArchiveTarget(directory).runs():
        actual_kind = "parquet"
    else:
        actual_kind = kind or "parquet"
    _check_kind(directory, kind, actual_kind)
    if actual_kind == "parquet":
        return ArchiveTarget(directory)
    if flaw := table_flaw(directory):
        raise ArchiveError(f"{directory}: {flaw}")
    from pyspark_barnabas.jobs.archive.delta_target import DeltaTarget  # delta-rs is an optional dependency

    return DeltaTarget(directory)


def _check_kind(location: Location, kind: str, actual_kind: str) -> None:
    if kind not in ("", actual_kind):
        raise ArchiveError(f"{location} is an archive in the format {actual_kind}, not {kind}")
