"""Database tables as streams: rows are read by an incrementing column into files, and streamed from these.

A take is a directory of Parquet files with all rows above the end of the last take, up to the greatest present value.
It is renamed when it is complete, and stores its own end. So what Spark reads again after a crash is what it read
before, even if the database has changed.
"""

import datetime
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.paths import pattern_of, uri
from pyspark_barnabas.pipelines.declaration import JdbcInput
from pyspark_barnabas.writers.jdbc_connection import flow_errors

#: Spark ignores files with such names.
_END = "_end.json"
_NUMBERS = frozenset({"whole", "decimal"})


class End(NamedTuple):
    """A value of the incrementing column."""

    kind: str  #: whole, decimal, date or timestamp
    text: str

    @property
    def column(self) -> Column:
        """The value as a column for Spark and the database."""
        match self.kind:
            case "timestamp":
                return f.timestamp_micros(f.lit(int(self.text)))
            case "date":
                return f.lit(datetime.date.fromisoformat(self.text))
            case "decimal":
                return f.lit(Decimal(self.text))
        return f.lit(int(self.text))

    def is_after(self, last: "End") -> bool:
        """Whether there may be rows after `last` up to this value; True for kinds that have no common order."""
        if self.kind != last.kind and not {self.kind, last.kind} <= _NUMBERS:
            return True
        if self.kind == "date":
            return datetime.date.fromisoformat(self.text) > datetime.date.fromisoformat(last.text)
        return Decimal(self.text) > Decimal(last.text)


def end_from(value: object, column: str) -> End:
    """Return a value from the database.

    :raises FlowError: Its type has no order, or equal values may be indistinguishable.
    """
    match value:
        case bool():
            pass
        case int():
            return End("whole", str(value))
        case Decimal():
            return End("decimal", str(value))
        case datetime.datetime():
            since = value.astimezone(datetime.UTC) - datetime.datetime.fromtimestamp(0, datetime.UTC)
            return End("timestamp", str(since // datetime.timedelta(microseconds=1)))
        case datetime.date():
            return End("date", value.isoformat())
    raise FlowError(
        f"growing: {column} is {type(value).__name__}; must be a whole number, decimal, date or timestamp"
    )


class Takes:
    """The takes of a table, below a flow's state."""

    def __init__(self, spark: SparkSession, source: JdbcInput, home: Path) -> None:
        self._spark = spark
        self._source = source
        self._home = home

    def stream(self) -> DataFrame:
        """Return all present and future takes.

        :raises FlowError: The table cannot be read, or has no such column.
        """
        schema = self._schema()
        # a flow may pause for any time, and files are removed when their batch is written
        options = {"maxFileAge": "36500d", "cleanSource": "delete"}
        return self._spark.readStream.schema(schema).options(**options).parquet(pattern_of(self._done, "/*"))

    def take(self) -> bool:
        """Read new rows; return whether there are any.

        :raises FlowError: With the database's message.
        """
        last = self.last()
        with flow_errors(self._source.database):
            newest = self._newest()
            if newest is None or (last is not None and not newest.is_after(last[1])):
                return False  # a lagging replica's newest value may be before the last: its rows were read
            column = f.col(f"`{self._source.growing}`")
            rows = self._table().where(column <= newest.column)
            rows = rows if last is None else rows.where(column > last[1].column)
            number = 0 if last is None else last[0] + 1
            self._keep(rows, number, newest)
        return True

    def last(self) -> tuple[int, End] | None:
        """Return the last take and its end."""
        numbers = [int(each.name) for each in self._done.glob("[0-9]*")]
        if not numbers:
            return None
        end = json.loads((self._done / str(max(numbers)) / _END).read_text())
        return max(numbers), End(**end)

    @property
    def _done(self) -> Path:
        return self._home / "taken"

    def _keep(self, rows: DataFrame, number: int, end: End) -> None:
        growing = self._home / "taking"
        rows.write.mode("overwrite").parquet(uri(growing))
        (growing / _END).write_text(json.dumps(end._asdict()))
        self._done.mkdir(parents=True, exist_ok=True)
        os.replace(growing, self._done / str(number))

    def _newest(self) -> End | None:
        """Return the greatest present value; computed by the database, which has an index."""
        options = self._source.database.spark_options()
        query = f"SELECT MAX({self._source.growing}) AS newest FROM {options.pop('dbtable')}"
        row = self._spark.read.format("jdbc").options(**options).option("query", query).load().first()
        assert row is not None, "a maximum is one row"
        return None if row[0] is None else end_from(row[0], self._source.growing)

    def _table(self) -> DataFrame:
        return self._spark.read.format("jdbc").options(**self._source.database.spark_options()).load()

    def _schema(self) -> StructType:
        with flow_errors(self._source.database):
            schema = self._table().schema
        if self._source.growing.lower() not in [name.lower() for name in schema.names]:
            names = ", ".join(schema.names)
            raise FlowError(
                f"{self._source.label} has no column {self._source.growing}; the table has {names}"
            )
        return schema
