"""Writes batches to database tables: tasks fill a staging table, the driver moves its rows in one transaction.

The transaction also records the batch in the table `barnabas_batches`, so that a written batch is not written again. A
failure before the commit leaves rows only in the staging table, which the next attempt replaces.

A task commits its rows to the staging table itself, and perhaps more than once: after a lost result, as a speculative
copy, or under a driver that is gone. So each staged row names the task attempt that wrote it, and only one attempt of
each task is moved.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.batch import BatchName
from pyspark_barnabas.writers.database import Database
from pyspark_barnabas.writers.jdbc_connection import JdbcConnection, connected, flow_errors

#: The table with the last written batch of each query.
MARKS = "barnabas_batches"
#: The staging table's extra column: the task attempt that wrote a row.
ATTEMPT = "barnabas_attempt"
_ATTEMPT_CHARACTERS = 100
#: Some databases limit the values in a list.
_LISTED_MAX = 500
#: Databases that copy a table's columns with this clause; others use a query without results.
_NO_DATA = ("jdbc:derby:", "jdbc:db2:", "jdbc:hsqldb:", "jdbc:postgresql:")


def write_jdbc(rows: DataFrame, database: Database, flow: str, batch: BatchName, count: int) -> None:
    """Write a batch, unless the database already has it.

    :param count: Number of rows.
    :raises FlowError: With the database's message, or the rows do not fit the table.
    """
    spark = rows.sparkSession
    with connected(spark, database) as connection:
        written = _written(connection, database, batch.query_id)
        if written is not None and written >= batch.number:
            return
        if not connection.has(database.table):
            connection.make_table(rows, database)
        columns = fitting(rows.columns, connection.columns(database.table) or [], database)
        staging = database.beside(f"barnabas_staging_{batch.query_id.replace('-', '')}")
        _stage(connection, database, staging, columns)
        attempt = uuid.uuid4().hex
        _save(_attempted(rows, attempt), database, staging)
        _move(connection, database, (staging, columns), attempt, (flow, batch, count))
        with suppress(Py4JJavaError):  # the next batch will
            connection.execute(f"DROP TABLE {staging}")


def check_table(spark: SparkSession, database: Database, columns: Sequence[str]) -> None:
    """Check that the database is reachable, and that its table, if it exists, accepts these columns.

    :raises FlowError: It is not, or does not.
    """
    with connected(spark, database) as connection:
        there = connection.columns(database.table)
        if there is not None:
            fitting(columns, there, database)


def fitting(columns: Sequence[str], there: Sequence[str], database: Database) -> list[str]:
    """Return the table's names of the rows' columns, in the rows' order; case matters only if it must.

    :raises FlowError: With the column that the table does not have.
    """
    matching = []
    for name in columns:
        like = [column for column in there if column == name] or [
            column for column in there if column.lower() == name.lower()
        ]
        if len(like) != 1:
            why = "more than one column" if like else "no column"
            raise FlowError(f"{database.label} has {why} {name}; the table has {', '.join(there)}")
        matching += like
    return matching


def staging_statements(url: str, table: str, staging: str, columns: Sequence[str]) -> list[str]:
    """Return statements that create a staging table with the table's columns and one more.

    :param columns: Quoted.
    """
    query = f"SELECT {', '.join(columns)} FROM {table}"
    if url.startswith(_NO_DATA):
        statement = f"CREATE TABLE {staging} AS ({query}) WITH NO DATA"
    else:
        statement = f"CREATE TABLE {staging} AS {query} WHERE 1 = 0"
    return [statement, f"ALTER TABLE {staging} ADD {ATTEMPT} VARCHAR({_ATTEMPT_CHARACTERS})"]


def decide_attempts(attempts: Iterable[str], attempt: str) -> list[str]:
    """Return the last attempt of each task in this run; other runs are ignored.

    :param attempts: Names from `attempt_name`.
    """
    last: dict[int, int] = {}
    for attempt_id in attempts:
        name, task, number = attempt_id.split(".")
        if name == attempt:
            last[int(task)] = max(int(number), last.get(int(task), 0))
    return [attempt_name(attempt, task, number) for task, number in sorted(last.items())]


def attempt_name(attempt: str, task: int, number: int) -> str:
    """Return the value in a staged row that identifies its writer."""
    return f"{attempt}.{task}.{number}"


def _written(connection: JdbcConnection, database: Database, query_id: str) -> int | None:
    """Return the last written batch of a query."""
    marks = database.beside(MARKS)
    if not connection.has(marks):
        connection.execute(
            f"CREATE TABLE {marks} (query_id VARCHAR(36) NOT NULL PRIMARY KEY, flow VARCHAR(100), batch BIGINT)"
        )
    rows = connection.query(f"SELECT batch FROM {marks} WHERE query_id = ?", query_id)
    return int(rows[0][0]) if rows else None


def _stage(connection: JdbcConnection, database: Database, staging: str, columns: Sequence[str]) -> None:
    if connection.has(staging):
        connection.execute(f"DROP TABLE {staging}")
    quoted = [connection.quoted(name) for name in columns]
    for statement in staging_statements(database.url, database.table, staging, quoted):
        connection.execute(statement)


def _save(rows: DataFrame, database: Database, table: str) -> None:
    options = {**database.spark_options(), "dbtable": table}
    with flow_errors(database):
        rows.write.format("jdbc").options(**options).mode("append").save()


def _attempted(rows: DataFrame, attempt: str) -> DataFrame:
    schema = StructType([*rows.schema.fields, StructField(ATTEMPT, StringType())])
    return rows.mapInArrow(_naming(attempt), schema)


def _naming(attempt: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for tasks that adds the task attempt to each row."""

    def name_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "tasks have one"
        name = attempt_name(attempt, context.partitionId(), context.taskAttemptId())
        for batch in batches:
            yield batch.append_column(ATTEMPT, pa.repeat(pa.scalar(name), batch.num_rows))

    return name_rows


def _move(
    connection: JdbcConnection,
    database: Database,
    staged: tuple[str, Sequence[str]],
    attempt: str,
    what: tuple[str, BatchName, int],
) -> None:
    """Move the rows in one transaction. It records the batch first, so that the second of two drivers waits, and then
    fails.
    """
    staging, columns = staged
    flow, batch, count = what
    names = ", ".join(connection.quoted(name) for name in columns)
    with connection.transaction():
        _mark(connection, database, flow, batch)
        found = [row[0] for row in connection.query(f"SELECT DISTINCT {ATTEMPT} FROM {staging}")]
        selected = decide_attempts(found, attempt)
        moved = 0
        for start in range(0, len(selected), _LISTED_MAX):
            some = selected[start : start + _LISTED_MAX]
            listed = ", ".join("?" * len(some))
            moved += connection.execute(
                f"INSERT INTO {database.table} ({names}) SELECT {names} FROM {staging} WHERE {ATTEMPT} IN ({listed})",
                *some,
            )
        if moved != count:
            raise FlowError(
                f"{database.label}: {moved} of {count} rows were staged: the database must support "
                "transactions, and a repeated batch must have the same rows"
            )


def _mark(connection: JdbcConnection, database: Database, flow: str, batch: BatchName) -> None:
    marks = database.beside(MARKS)
    changed = connection.execute(
        f"UPDATE {marks} SET batch = ? WHERE query_id = ? AND batch < ?",
        batch.number,
        batch.query_id,
        batch.number,
    )
    if changed == 0:  # there is no row yet, or another driver has written the batch: then this fails
        connection.execute(
            f"INSERT INTO {marks} (query_id, flow, batch) VALUES (?, ?, ?)",
            batch.query_id,
            flow,
            batch.number,
        )
