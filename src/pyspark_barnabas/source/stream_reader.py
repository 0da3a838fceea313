"""`spark.readStream.format("barnabas")`: micro-batches by offsets, with limits from Spark 4.2 on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import DataType, StructType

from barnabas.reading.logs import Logs
from barnabas.reading.opening import open_logs
from barnabas.reading.option_values import OptionError
from pyspark_barnabas.plain_errors import BarnabasError, plain_errors
from pyspark_barnabas.runtime.local_slots import local_slots_count
from pyspark_barnabas.source.catalog_tables import options_for_reading
from pyspark_barnabas.source.options import stream_options
from pyspark_barnabas.source.schemas import requested_columns
from pyspark_barnabas.source.stream_planner import StreamPlanner
from pyspark_barnabas.source.tasks import Read, read_records
from pyspark_barnabas.stream_offsets import StreamOffset

try:
    from pyspark.sql.streaming import datasource
except ImportError:  # Spark 4.1 has no limits for Python sources
    _BASES: tuple[type, ...] = (DataSourceStreamReader,)
    HAS_LIMITS = False
    spark_limits: Any = None
else:
    _BASES = (DataSourceStreamReader, datasource.SupportsTriggerAvailableNow)
    HAS_LIMITS = True
    spark_limits = datasource

#: Spark's form of offsets: by topic, then by partition as text; and the topic ids.
Offsets = dict[str, dict[str, Any]]

#: The base classes of stream readers in the installed Spark.
STREAM_READER_BASES: Any = type("StreamReaderBases", _BASES, {})


def stream_reader(
    options: Mapping[str, str],
    schema: StructType,
    types: Mapping[str, DataType],
    read: Read = read_records,
) -> DataSourceStreamReader:
    """Return the reader of a stream; one that fails for options or a schema that are not valid.

    An error here would be hidden by another one: PySpark stops the reader that it does not have yet.
    """
    try:
        return StreamReader(options_for_reading(schema, options), requested_columns(schema, types), read)
    except OptionError as error:
        return InvalidStreamReader(str(error))


class StreamReader(STREAM_READER_BASES):  # type: ignore[misc]
    """Reads the selected columns, one micro-batch after the other."""

    def __init__(self, options: Mapping[str, str], columns: Sequence[str], read: Read = read_records) -> None:
        self._options = stream_options(options)
        self._columns = tuple(columns)
        self._read = read
        self._logs: Logs | None = None
        self._stream_planner: StreamPlanner | None = None
        limited = self._options.max_offsets_per_trigger or self._options.min_offsets_per_trigger
        if limited and not HAS_LIMITS:
            message = (
                "maxOffsetsPerTrigger and minOffsetsPerTrigger need Spark 4.2: leave them out in Spark 4.1"
            )
            raise OptionError(message)

    def __getstate__(self) -> dict[str, object]:
        """Return the state without open connections: tasks get a copy of the reader."""
        return {
            **self.__dict__,
            "_options": self._options.for_tasks(),
            "_logs": None,
            "_stream_planner": None,
        }

    @plain_errors()
    def initialOffset(self) -> Offsets:  # noqa: N802
        return self._open_planner().initial().to_json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        if self._options.max_offsets_per_trigger is not None:
            return spark_limits.ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return spark_limits.ReadMinRows(self._options.min_offsets_per_trigger)
        return spark_limits.ReadAllAvailable()

    @plain_errors()
    def latestOffset(self, start: Offsets | None = None, limit: object = None) -> Offsets:  # noqa: N802
        """Return the end of the next micro-batch; Spark 4.1 passes neither start nor limit."""
        limited = HAS_LIMITS and limit is not None and not isinstance(limit, spark_limits.ReadAllAvailable)
        known = None if start is None else StreamOffset.from_json(start)
        return self._open_planner().latest(known, limited=limited).to_json()

    def reportLatestOffset(self) -> Offsets | None:  # noqa: N802
        latest = self._open_planner().seen
        return None if latest is None else latest.to_json()

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._open_planner().pin()

    @plain_errors()
    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        return self._open_planner().tasks(StreamOffset.from_json(start), StreamOffset.from_json(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            yield from self._read(partition, self._options, self._columns)

    def stop(self) -> None:
        if self._logs is not None:
            self._logs.close()
        self._logs = self._stream_planner = None

    def _open_planner(self) -> StreamPlanner:
        if self._stream_planner is None:
            self._logs = open_logs(self._options)
            slots_count = local_slots_count()
            self._stream_planner = StreamPlanner(self._logs, self._options, slots_count=slots_count)
        return self._stream_planner


class InvalidStreamReader(STREAM_READER_BASES):  # type: ignore[misc]
    """Reports a mistake as soon as Spark asks for anything."""

    def __init__(self, message: str) -> None:
        self._message = message

    def initialOffset(self) -> Offsets:  # noqa: N802
        raise BarnabasError(self._message)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        raise BarnabasError(self._message)

    def latestOffset(self, start: Offsets | None = None, limit: object = None) -> Offsets:  # noqa: N802
        raise BarnabasError(self._message)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        raise BarnabasError(self._message)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        raise BarnabasError(self._message)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise BarnabasError(self._message)
