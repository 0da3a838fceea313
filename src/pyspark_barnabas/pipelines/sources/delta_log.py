"""What the commits of a Delta table have added, read from its log (Delta's protocol, "Actions")."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from pyspark_barnabas.pipelines.declaration import Changes
from pyspark_barnabas.pipelines.failures import FlowError

#: What readers must know that this one does.
_FEATURES = frozenset({"timestampNtz"})


class AddedFile(NamedTuple):
    """A file of rows."""

    path: str  #: below the table's directory, or absolute
    size_bytes: int
    partition: Mapping[str, str | None]  #: columns that are not in the file


class DeltaOffset(NamedTuple):
    """How far a flow has come: so many files of a version, and all of those before."""

    snapshot: int  #: the version it began at, of which all files count, whoever added them
    version: int
    files: int


def end_of(table: Path, offset: DeltaOffset, files_max: int | None, changes: Changes) -> DeltaOffset:
    """The place behind the next files, at most `files_max`; the same place when there are none.

    :raises FlowError: As `added`.
    """
    left = files_max
    while True:
        found = added(table, offset.snapshot, offset.version, changes)
        assert found is not None, "a place is in a version that was there"
        wanted = len(found) - offset.files if left is None else min(left, len(found) - offset.files)
        offset = offset._replace(files=offset.files + wanted)
        left = None if left is None else left - wanted
        if left == 0 or added(table, offset.snapshot, offset.version + 1, changes) is None:
            return offset
        offset = DeltaOffset(offset.snapshot, offset.version + 1, 0)


def between(table: Path, start: DeltaOffset, end: DeltaOffset, changes: Changes) -> list[AddedFile]:
    """The files from one place to another.

    The end may count another snapshot than the start does, which then is its own version: it ends behind all of that.

    :raises FlowError: As `added`.
    """
    files: list[AddedFile] = []
    for version in range(start.version, end.version + 1):
        found = added(table, start.snapshot, version, changes)
        if found is None:
            raise FlowError(_gone(table, version))
        first = start.files if version == start.version else 0
        files += found[first : end.files if version == end.version else None]
    return files


def added(table: Path, snapshot: int, version: int, changes: Changes) -> Sequence[AddedFile] | None:
    """The files that a version has added, in a lasting order; of the snapshot all that it has; None for no version yet.

    :raises FlowError: It has deleted or rewritten rows; or its part of the log is gone.
    """
    if version == snapshot:
        return _snapshot(table, version)
    offset = table / "_delta_log" / f"{version:020}.json"
    try:
        text = offset.read_text(encoding="utf-8")
    except FileNotFoundError:
        if DeltaTable(table).version() >= version:
            raise FlowError(_gone(table, version)) from None
        return None
    return added_in(text, f"delta {table}", version, changes)


def added_in(commit: str, label: str, version: int, changes: Changes) -> Sequence[AddedFile]:
    """The files that a commit has added, but for those that only hold rows anew.

    :param commit: Its JSON, an action a line.
    :raises FlowError: It has deleted or rewritten rows, or it needs a reader that can more.
    """
    actions: list[dict[str, Any]] = [json.loads(line) for line in commit.splitlines() if line.strip()]
    adds = [each["add"] for each in actions if each.get("add", {}).get("dataChange")]
    removes = [each["remove"] for each in actions if each.get("remove", {}).get("dataChange")]
    if removes:
        if changes is Changes.SKIP:
            return ()
        raise FlowError(
            f"{label}: version {version} deletes or rewrites rows ({len(removes)} files are removed); a flow reads "
            "what is appended; with changes: skip it would go on behind this version"
        )
    if any(each.get("deletionVector") for each in adds):
        raise FlowError(f"{label}: version {version} has deletion vectors, which are not understood here")
    return [
        AddedFile(unquote(each["path"]), each["size"], each.get("partitionValues") or {}) for each in adds
    ]


def check_readable(table: DeltaTable, label: str) -> None:
    """See that this reader is enough for a table.

    :raises FlowError: What it would have to know.
    """
    protocol, mode = table.protocol(), table.metadata().configuration.get("delta.columnMapping.mode", "none")
    unknown = sorted(set(protocol.reader_features or ()) - _FEATURES)
    if mode == "none" and "columnMapping" in unknown:
        unknown.remove("columnMapping")
    if mode != "none" or unknown:
        features = ", ".join(unknown) or f"columns by {mode}"
        raise FlowError(f"{label} needs readers that know {features}, which are not understood here")


def _snapshot(table: Path, version: int) -> Sequence[AddedFile]:
    try:
        found = pa.table(DeltaTable(table, version=version).get_add_actions()).to_pylist()
    except Exception as error:  # of kinds that delta-rs does not promise
        raise FlowError(f"{_gone(table, version)} ({error})") from None
    found.sort(key=lambda each: (each["modification_time"], each["path"]))  # about as they were added
    return [
        AddedFile(unquote(each["path"]), each["size_bytes"], _texts(each.get("partition") or {}))
        for each in found
    ]


def _texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    """As commits have them."""
    return {key: _text(value) for key, value in values.items()}


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _gone(table: Path, version: int) -> str:
    return (
        f"delta {table}: version {version} is no longer in the table's log, so what was added cannot be told; "
        "without the flow's state directory it begins anew"
    )
