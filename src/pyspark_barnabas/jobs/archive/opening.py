"""Open archives at locations, in the format that they have."""

from pathlib import Path
from typing import Any

from barnabas.objects.location import Location
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
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
    if kind == "delta":
        message = f"{location}: archives in object stores have the format parquet; delta needs a directory"
        raise ArchiveError(message)
    return ObjectTarget(location, settings or StoreSettings(), store)


def _open_directory(directory: Path, kind: str) -> ArchiveTarget:
    if (directory / "_delta_log").is_dir():
        actual_kind = "delta"
    elif ArchiveTarget(directory).runs():
        actual_kind = "parquet"
    else:
        actual_kind = kind or "parquet"
    if kind not in ("", actual_kind):
        raise ArchiveError(f"{directory} is an archive in the format {actual_kind}, not {kind}")
    if actual_kind == "parquet":
        return ArchiveTarget(directory)
    if flaw := table_flaw(directory):
        raise ArchiveError(f"{directory}: {flaw}")
    from pyspark_barnabas.jobs.archive.delta_target import DeltaTarget  # delta-rs is an optional dependency

    return DeltaTarget(directory)
