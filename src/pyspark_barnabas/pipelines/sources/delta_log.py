"""Reads the files added by the commits of a Delta table from its log (Delta's protocol, "Actions")."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import Changes

#: Reader features that this reader supports.
_FEATURES = frozenset({"timestampNtz"})


class AddedFile(NamedTuple):
    """A data file."""

    path: str  #: relative to the table's directory, or absolute
    size_bytes: int
    partition: Mapping[str, str | None]  #: columns that are not in the file


class DeltaOffset(NamedTuple):
    """A flow's position: that many files of a version, and all files of earlier versions."""

    snapshot: int  #: the version at which it began, all of whose files count, whichever commit added them
    version: int
    files: int


def end_of(table: Path, offset: DeltaOffset, files_max: int | None, changes: Changes) -> DeltaOffset:
    """Return the position after the next files, at most `files_max`; the same position if there are none.

    :raises FlowError: As `added`.
    """
    left = files_max
    while True:
        files = added(table, offset.snapshot, offset.version, changes)
        assert files is not None, "a position must be in an existing version"
        count = len(files) - offset.files if left is None else min(left, len(files) - offset.files)
        offset = offset._replace(files=offset.files + count)
        left = None if left is None else left - count
        if left == 0 or added(table, offset.snapshot, offset.version + 1, changes) is None:
            return offset
        offset = DeltaOffset(offset.snapshot, offset.version + 1, 0)


def between(table: Path, start: DeltaOffset, end: DeltaOffset, changes: Changes) -> list[AddedFile]:
    """Return the files between two positions.

    The end may have a later snapshot than the start, which must be its own version: it includes everything before.

    :raises FlowError: As `added`.
    """
    files: list[AddedFile] = []
    for version in range(start.version, end.version + 1):
        found = added(table, start.snapshot, version, changes)
        if found is None:
            raise FlowError(_missing_version(table, version))
        first = start.files if version == start.version else 0
        files += found[first : end.files if version == end.version else None]
    return files


def added(table: Path, snapshot: int, version: int, changes: Changes) -> Sequence[AddedFile] | None:
    """Return the files that a version added, in a stable order; of the snapshot all its files; None for a future
    version.

    :raises FlowError: The version deleted or rewrote rows; or its part of the log is gone.
    """
    if version == snapshot:
        return _snapshot(table, version)
    offset = table / "_delta_log" / f"{version:020}.json"
    try:
        text = offset.read_text(encoding="utf-8")
    except FileNotFoundError:
        if DeltaTable(table).version() >= version:
            raise FlowError(_missing_version(table, version)) from None
        return None
    return added_in(text, f"delta {table}", version, changes)


def added_in(commit: str, label: str, version: int, changes: Changes) -> Sequence[AddedFile]:
    """Return the files that a commit added, without those that only rewrite rows.

    :param commit: Its JSON, one action per line; strings may have other line ends of Unicode, such as U+2028.
    :raises FlowError: It deleted or rewrote rows, or requires an unsupported reader feature.
    """
    actions: list[dict[str, Any]] = [json.loads(line) for line in commit.split("\n") if line.strip()]
    adds = [action["add"] for action in actions if action.get("add", {}).get("dataChange")]
    removes = [action["remove"] for action in actions if action.get("remove", {}).get("dataChange")]
    if removes:
        if changes is Changes.SKIP:
            return ()
        raise FlowError(
            f"{label}: version {version} deletes or rewrites rows ({len(removes)} files are removed); a flow reads "
            "appended rows only; with changes: skip it continues after this version"
        )
    if any(action.get("deletionVector") for action in adds):
        raise FlowError(f"{label}: version {version} has deletion vectors, which are not supported")
    return [
        AddedFile(unquote(action["path"]), action["size"], action.get("partitionValues") or {})
        for action in adds
    ]


def check_readable(table: DeltaTable, label: str) -> None:
    """Check that this reader supports a table.

    :raises FlowError: With the unsupported feature.
    """
    protocol, mode = table.protocol(), table.metadata().configuration.get("delta.columnMapping.mode", "none")
    unknown = sorted(set(protocol.reader_features or ()) - _FEATURES)
    if mode == "none" and "columnMapping" in unknown:
        unknown.remove("columnMapping")
    if mode != "none" or unknown:
        features = ", ".join(unknown) or f"columns by {mode}"
        raise FlowError(f"{label} requires reader features {features}, which are not supported")


def _snapshot(table: Path, version: int) -> Sequence[AddedFile]:
    try:
        rows = pa.table(DeltaTable(table, version=version).get_add_actions()).to_pylist()
    except Exception as error:  # delta-rs documents no error types
        raise FlowError(f"{_missing_version(table, version)} ({error})") from None
    rows.sort(
        key=lambda row: (row["modification_time"], row["path"])
    )  # approximately in the order of their commits
    return [
        AddedFile(unquote(row["path"]), row["size_bytes"], _texts(row.get("partition") or {})) for row in rows
    ]


def _texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Return values as commits contain them."""
    return {key: _text(value) for key, value in values.items()}


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _missing_version(table: Path, version: int) -> str:
    return (
        f"delta {table}: version {version} is no longer in the table's log, so the rows that were added since "
        "cannot be determined; remove the flow's state directory to start again with all rows of the table"
    )
