"""A streaming query of our source on a real session, which can be stopped and restarted."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from support.source_rows import SourceRow, frame_rows

WAIT_S = 60


class Stream:
    """A query with a checkpoint and the rows of each of its micro-batches; it can be restarted."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], checkpoint: Path) -> None:
        self.spark = spark
        self.options = {"startingOffsets": "earliest", "includeHeaders": "true", **options}
        self.checkpoint = checkpoint
        self.batches: dict[int, list[SourceRow]] = {}

    def take(self, batch: DataFrame, number: int) -> None:
        """Store a micro-batch; an uncommitted batch is repeated, with the same rows."""
        rows = frame_rows(batch)
        assert self.batches.setdefault(number, rows) == rows

    def start(self, **trigger: object) -> StreamingQuery:
        frame = self.spark.readStream.format("barnabas").options(**self.options).load()
        writer = frame.writeStream.foreachBatch(self.take).option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**trigger).start()

    def run(self) -> StreamingQuery:
        """Read all available data."""
        query = self.start(availableNow=True)
        query.awaitTermination(WAIT_S)
        return query

    @property
    def rows(self) -> list[SourceRow]:
        return sorted(row for rows in self.batches.values() for row in rows)
