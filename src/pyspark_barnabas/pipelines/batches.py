"""Processes each batch of a flow: checks expectations, and writes rows and dead letters, once."""

from threading import Event

from pyspark.sql import DataFrame

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.building import sink_options
from pyspark_barnabas.pipelines.declaration import DeltaSink, Flow, JdbcSink, ParquetSink, Pipeline, TopicSink
from pyspark_barnabas.pipelines.formats import encoded
from pyspark_barnabas.pipelines.letters import dead_letters
from pyspark_barnabas.pipelines.state import StateDirectory
from pyspark_barnabas.writers.batch import BatchName
from pyspark_barnabas.writers.delta import write_delta
from pyspark_barnabas.writers.jdbc import write_jdbc
from pyspark_barnabas.writers.parquet import write_parquet
from pyspark_barnabas.writers.topics import write_topic

_SHOWN_CHARACTERS_MAX = 200


class ExpectationFailed(FlowError):
    """Rows violated an expectation with action fail; nothing of their batch is written."""


class Stopped(Exception):
    """The flow stops before this batch."""


class FlowBatchWriter:
    """Receives a flow's batches from Spark; a repeated batch is written once."""

    def __init__(self, pipeline: Pipeline, flow: Flow, stopping: Event) -> None:
        self._flow = flow
        self._state = StateDirectory(pipeline.state)
        self._options = sink_options(pipeline) if pipeline.bootstrap is not None else {}
        self._stopping = stopping
        self.error: Exception | None = None
        self.stopped = False  #: whether a batch was refused
        self.rows_out = 0
        self.dead_letters = 0
        self.dropped = 0

    def __call__(self, checked: DataFrame, number: int) -> None:
        """Write a batch.

        :raises Stopped: Before anything is written, when the flow is stopping.
        :raises ExpectationFailed: Before anything is written.
        """
        if self._stopping.is_set():
            self.stopped = True
            raise Stopped
        try:
            self._write(checked.persist(), BatchName(self._state.query_id(self._flow.name), number))
        except Exception as error:
            self.error = error
            raise
        finally:
            checked.unpersist()

    def _write(self, checked: DataFrame, batch: BatchName) -> None:
        counts = {row["action"]: row["count"] for row in checked.groupBy("action").count().collect()}
        if counts.get("fail"):
            self._fail(checked, counts["fail"])
        if counts.get("dead_letter"):
            assert self._flow.dead_letters is not None, "only a flow that has them gives dead letters"
            letters = dead_letters(checked, self._flow.name)
            name = f"{self._flow.name}.dead"
            write_topic(letters, self._options, self._flow.dead_letters, name, batch)
        if counts.get(None):
            self._write_rows(checked.where("action IS NULL"), batch, counts[None])
        self.rows_out += counts.get(None, 0)
        self.dead_letters += counts.get("dead_letter", 0)
        self.dropped += counts.get("drop", 0)

    def _write_rows(self, checked: DataFrame, batch: BatchName, count: int) -> None:
        rows = checked.select("row.*")
        match self._flow.sink:
            case TopicSink() as sink:
                write_topic(encoded(checked, sink), self._options, sink.topic, self._flow.name, batch)
            case DeltaSink(path, partition_by):
                write_delta(rows, path, partition_by, batch)
            case ParquetSink(path, partition_by):
                write_parquet(rows, path, partition_by, batch)
            case JdbcSink(database):
                write_jdbc(rows, database, self._flow.name, batch, count)

    def _fail(self, checked: DataFrame, count: int) -> None:
        shown = "coalesce(CAST(letter.value AS STRING), to_json(row)) AS text"
        row = checked.where("action = 'fail'").selectExpr("reason", "letter", shown).first()
        assert row is not None, "they were counted"
        letter, text = row["letter"], row["text"] or ""
        where = ""
        if letter is not None:
            offset = "" if letter["offset"] is None else f"-{letter['partition']} offset {letter['offset']}"
            where = f" of {letter['topic']}{offset}"
        text = f"{text[:_SHOWN_CHARACTERS_MAX]}..." if len(text) > _SHOWN_CHARACTERS_MAX else text
        advice = (
            "" if self._flow.dead_letters else "; set dead_letters: TOPIC to continue without such records"
        )
        raise ExpectationFailed(f"{row['reason']}: {count} in this batch, the first{where}: {text}{advice}")
