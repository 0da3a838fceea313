"""Databases under test: Derby, which comes with Spark, in one JVM at a time; and servers."""

from abc import abstractmethod
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pyspark_barnabas.pipelines.databases import Database, Secret
from pyspark_barnabas.pipelines.failures import FlowError
from pyspark_barnabas.pipelines.jdbc import connected


class Opened:
    """A database by the connections of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @abstractmethod
    def table(self, name: str) -> Database: ...

    def execute(self, *statements: str) -> None:
        with connected(self._spark, self.table("none")) as connection:
            for each in statements:
                connection.execute(each)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with connected(self._spark, self.table("none")) as connection:
            return connection.query(query)


class Served(Opened):
    """A database of a server; the password is in an environment variable."""

    def __init__(self, spark: SparkSession, url: str, user: str, variable: str) -> None:
        super().__init__(spark)
        self.url = url
        self._login = user, Secret("env", variable)

    def table(self, name: str) -> Database:
        return Database(self.url, name, *self._login, None, {})


class Derby(Opened):
    """A database in a directory."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        super().__init__(spark)
        self.place = place

    @property
    def url(self) -> str:
        return f"jdbc:derby:{self.place};create=true"

    def table(self, name: str) -> Database:
        return Database(self.url, name, None, None, None, {})

    def opens(self) -> bool:
        """Whether no other JVM has it: a driver's lives a moment longer than its Python."""
        try:
            return bool(self.rows("VALUES 1"))
        except FlowError:
            return False

    def let_go(self) -> None:
        """So that another JVM may open it."""
        jvm: Any = self._spark._jvm
        with pytest.raises(Py4JJavaError, match="shutdown"):  # it says by an error that it has
            jvm.java.sql.DriverManager.getConnection(f"jdbc:derby:{self.place};shutdown=true")
