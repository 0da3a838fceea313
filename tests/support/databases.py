"""Databases under test: on servers, in files, and Derby, which only one JVM at a time can open."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.batch import BatchName
from pyspark_barnabas.writers.database import Database, PasswordRef
from pyspark_barnabas.writers.jdbc import write_jdbc
from pyspark_barnabas.writers.jdbc_connection import JdbcConnection, connected

QUERY = "0b5c7d51-2a44-4d0f-8a57-0d51d7a2d6b1"


class Opened:
    """A database, accessed over JDBC connections of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @abstractmethod
    def table(self, name: str) -> Database: ...

    def execute(self, *statements: str) -> None:
        with connected(self.spark, self.table("none")) as connection:
            for each in statements:
                connection.execute(each)

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns, quoted."""
        with connected(self.spark, self.table("none")) as connection:
            return [connection.quoted(name) for name in connection.columns(table) or []]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with connected(self.spark, self.table("none")) as connection:
            return connection.query(query)


class Served(Opened):
    """A database of a server; the password is in an environment variable."""

    def __init__(self, spark: SparkSession, url: str, user: str, variable: str) -> None:
        super().__init__(spark)
        self.url = url
        self._login = user, PasswordRef("env", variable)

    def table(self, name: str) -> Database:
        return Database(self.url, name, *self._login, None, {})


class Filed(Opened):
    """A database in a file or directory named by the URL."""

    def __init__(
        self, spark: SparkSession, url: str, options: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(spark)
        self.url = url
        self._options = options

    def table(self, name: str) -> Database:
        return Database(self.url, name, None, None, None, self._options)


class Derby(Opened):
    """A Derby database in a directory."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        super().__init__(spark)
        self.directory = directory

    @property
    def url(self) -> str:
        return f"jdbc:derby:{self.directory};create=true"

    def table(self, name: str) -> Database:
        return Database(self.url, name, None, None, None, {})

    def opens(self) -> bool:
        """Whether no other JVM has it open: a driver's JVM outlives its Python process by a moment."""
        try:
            return bool(self.rows("VALUES 1"))
        except FlowError:
            return False

    def shut_down(self) -> None:
        """Shut the database down, so that another JVM can open it."""
        jvm: Any = self.spark._jvm
        with pytest.raises(
            Py4JJavaError, match="shutdown"
        ):  # Derby reports a successful shutdown as an error
            jvm.java.sql.DriverManager.getConnection(f"jdbc:derby:{self.directory};shutdown=true")


class DriverKilledError(Exception):
    """The driver was killed."""


def write_dying_at(call: int, write: Callable[[], None]) -> int:
    """Write, and die after the statement with this number; return the number of statements executed."""
    real, calls = JdbcConnection.execute, 0

    def dying(self: JdbcConnection, statement: str, *values: str | int) -> int:
        nonlocal calls
        changed = real(self, statement, *values)
        calls += 1
        if calls == call:
            raise DriverKilledError
        return changed

    with pytest.MonkeyPatch.context() as patch, suppress(FlowError):
        patch.setattr(JdbcConnection, "execute", dying)
        write()
    return calls


def write_dying_everywhere(opened: Opened, table: str) -> list[int]:
    """Write batches of 30 rows with columns id and kind, each killed after every statement in turn and retried.

    :returns: The ids that must be in the table.
    """
    calls = number = 0
    while calls >= number:
        number += 1
        rows = opened.spark.range(100 * number, 100 * number + 30, 1, 2).selectExpr("id", "'k' AS kind")
        write = partial(write_jdbc, rows, opened.table(table), "one", BatchName(QUERY, number), 30)
        calls = write_dying_at(number, write)
        write()
    return [100 * batch + row for batch in range(1, number + 1) for row in range(30)]
