"""Database access through Spark's own connections, on the driver, with transactions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from pyspark_barnabas.failures import FlowError, one_line_error
from pyspark_barnabas.writers.database import Database

#: Spark's value for "on the driver" when it opens connections.
_DRIVER = -1


class JdbcConnection:
    """An open connection; statements take effect immediately, or in a `transaction`."""

    def __init__(self, connection: Any, dialect: Any) -> None:
        self._connection = connection
        self._dialect = dialect

    def quoted(self, name: str) -> str:
        """Return a column's name quoted for SQL."""
        return str(self._dialect.quoteIdentifier(name))

    def execute(self, statement: str, *values: str | int) -> int:
        """Return the number of changed rows."""
        with self._prepared(statement, values) as prepared:
            return int(prepared.executeUpdate())

    def query(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        """Return all rows; for small results."""
        with self._prepared(statement, values) as prepared:
            result_set = prepared.executeQuery()
            width = range(1, result_set.getMetaData().getColumnCount() + 1)
            rows = []
            while result_set.next():
                rows.append(tuple(result_set.getObject(index) for index in width))
            return rows

    def columns(self, table: str) -> list[str] | None:
        """Return the names of a table's columns as the database has them; None if there is no readable table."""
        try:
            with self._prepared(f"SELECT * FROM {table} WHERE 1 = 0", ()) as prepared:
                metadata = prepared.executeQuery().getMetaData()
                return [str(metadata.getColumnName(index + 1)) for index in range(metadata.getColumnCount())]
        except Py4JJavaError:
            return None

    def has(self, table: str) -> bool:
        """Whether the table exists."""
        return self.columns(table) is not None

    def make_table(self, rows: DataFrame, database: Database) -> None:
        """Create the table with the rows' columns, as Spark does for missing tables.

        Spark's writer checks for the table first, and misreads some databases' errors for a missing one.
        """
        spark = rows.sparkSession
        jvm: Any = spark._jvm  # noqa: SLF001 - there is no other way to Java
        options = _jdbc(jvm).JdbcOptionsInWrite(_options(jvm, database))
        schema = rows._jdf.schema()  # noqa: SLF001
        is_case_sensitive = spark.conf.get("spark.sql.caseSensitive") == "true"
        _jdbc(jvm).JdbcUtils.createTable(self._connection, database.table, schema, is_case_sensitive, options)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything in the block, or nothing."""
        self._connection.setAutoCommit(False)
        try:
            yield
            self._connection.commit()
        except BaseException:
            with suppress(Py4JJavaError):  # a lost connection rolls back by itself
                self._connection.rollback()
            raise
        finally:
            with suppress(Py4JJavaError):
                self._connection.setAutoCommit(True)

    @contextmanager
    def _prepared(self, statement: str, values: Sequence[str | int]) -> Iterator[Any]:
        prepared = self._connection.prepareStatement(statement)
        try:
            for index, value in enumerate(values, 1):
                if isinstance(value, int):
                    prepared.setLong(index, value)
                else:
                    prepared.setString(index, value)
            yield prepared
        finally:
            prepared.close()


@contextmanager
def connected(spark: SparkSession, database: Database) -> Iterator[JdbcConnection]:
    """Open a connection of the driver's JVM, like Spark's own.

    :raises FlowError: With the database's message, without secrets; also for errors within the block.
    """
    with flow_errors(database):
        connection, dialect = _opened(spark, database)
        try:
            yield JdbcConnection(connection, dialect)
        finally:
            with suppress(Py4JJavaError):
                connection.close()


@contextmanager
def flow_errors(database: Database) -> Iterator[None]:
    """Turn Java's errors into one line with the database and without secrets.

    :raises FlowError: Instead of any error in the block.
    """
    try:
        yield
    except FlowError:
        raise
    except Exception as error:
        line = one_line_error(error).removeprefix("java.sql.")
        raise FlowError(database.without_secrets(f"{database.label}: {line}")) from None


def _opened(spark: SparkSession, database: Database) -> tuple[Any, Any]:
    jvm: Any = spark._jvm  # noqa: SLF001 - there is no other way to Java
    options = _jdbc(jvm).JDBCOptions(_options(jvm, database))
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(database.spark_url)
    return dialect.createConnectionFactory(options).apply(_DRIVER), dialect


def _options(jvm: Any, database: Database) -> Any:
    java_options = jvm.java.util.HashMap()
    for key, value in database.spark_options().items():
        java_options.put(key, value)
    return jvm.PythonUtils.toScalaMap(java_options)


def _jdbc(jvm: Any) -> Any:
    return jvm.org.apache.spark.sql.execution.datasources.jdbc
