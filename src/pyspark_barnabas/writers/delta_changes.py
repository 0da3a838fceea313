"""Applies a batch of changes to a Delta table: of each key the last change counts; it replaces or deletes the row.

A deleted row leaves nothing behind, so an older change that arrives in a later batch would create it again. The
changes of a key must therefore be in one partition of a topic, as those of a producer with keys are.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.batch import BatchName
from pyspark_barnabas.writers.delta import open_table, properties_of

_INDEX = "__barnabas_index"


class KeyedChanges(NamedTuple):
    """How rows are changes of a table."""

    keys: tuple[str, ...]
    sequence: str  #: the column that orders the changes of a key; it is stored, too
    delete_column: str | None = None  #: true in rows that delete their key; it is not stored


def commit_changes(
    path: Path,
    schema: StructType,
    partition_by: tuple[str, ...],
    batch: BatchName,
    changes: KeyedChanges,
    files: Sequence[Path],
) -> None:
    """Apply a batch in one commit, unless the table already has it.

    :param schema: The stored columns.
    :param files: The batch's rows in Parquet; they must fit in memory.
    :raises FlowError: The rows do not fit the table, or have no key or place in the order.
    """
    table = open_table(path, schema, partition_by, batch)
    if table is None:
        return
    rows = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    _check_no_null(rows, changes)
    _merge(table, last_changes(rows, changes), schema.names, batch, changes)


def _check_no_null(rows: pa.Table, changes: KeyedChanges) -> None:
    """Check what `_merge` compares: null equals no key, and is neither older nor newer than another change."""
    for option, names in (("keys", changes.keys), ("sequenceBy", (changes.sequence,))):
        for name in names:
            nulls_count = rows[name].null_count
            if nulls_count:
                raise FlowError(
                    f"column {name} (option {option}) is null in {nulls_count} of {rows.num_rows} changes: each change "
                    "needs a value; filter out the rows without one"
                )


def last_changes(rows: pa.Table, changes: KeyedChanges) -> pa.Table:
    """Return the last change of each key."""
    ordered = rows.sort_by(changes.sequence)
    numbered = ordered.append_column(_INDEX, pa.array(range(ordered.num_rows), pa.int64()))
    last = numbered.group_by(list(changes.keys)).aggregate([(_INDEX, "max")])
    return ordered.take(last[f"{_INDEX}_max"])


def _merge(
    table: DeltaTable, rows: pa.Table, columns: Sequence[str], batch: BatchName, changes: KeyedChanges
) -> None:
    same_key = " AND ".join(f"{_name('target', key)} = {_name('source', key)}" for key in changes.keys)
    newer = f"{_name('source', changes.sequence)} > {_name('target', changes.sequence)}"
    deletes = (
        "false"
        if changes.delete_column is None
        else f"coalesce({_name('source', changes.delete_column)}, false)"
    )
    values = {_quoted(name): _name("source", name) for name in columns}
    merger = table.merge(
        rows, same_key, source_alias="source", target_alias="target", commit_properties=properties_of(batch)
    )
    merger = merger.when_matched_update(values, f"NOT {deletes} AND {newer}")
    merger = merger.when_not_matched_insert(values, f"NOT {deletes}")
    if changes.delete_column is not None:
        merger = merger.when_matched_delete(f"{deletes} AND {newer}")
    merger.execute()


def _name(table: str, column: str) -> str:
    return f"{table}.{_quoted(column)}"


def _quoted(column: str) -> str:
    return f"`{column}`"
