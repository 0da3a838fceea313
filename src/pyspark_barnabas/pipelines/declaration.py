"""The contents of a pipelines file; what only Spark can check is checked when a flow is built."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from pyspark_barnabas.writers.database import Database

#: Prefix of internal columns; others must not use it.
RESERVED = "__"


class Format(Enum):
    """The format of records or files."""

    JSON = "json"
    CSV = "csv"
    RAW = "raw"  #: the record's own columns: key, value, topic, partition, offset, timestamp
    PARQUET = "parquet"  #: rows of files and tables, without decoding
    AVRO = "avro"
    PROTOBUF = "protobuf"


class ExpectationAction(Enum):
    """What happens to a row that violates an expectation, the most severe first."""

    FAIL = "fail"
    DEAD_LETTER = "dead_letter"
    DROP = "drop"


class OutputMode(Enum):
    """The rows of an aggregation that a batch writes."""

    APPEND = "append"
    UPDATE = "update"


class TriggerKind(Enum):
    """When a flow runs."""

    ONCE = "once"  #: all available data in one batch
    AVAILABLE_NOW = "available_now"  #: all available data in several batches
    INTERVAL = "interval"  #: until it is stopped


class Changes(Enum):
    """What a flow does at a commit of a Delta table that deletes or rewrites rows."""

    FAIL = "fail"
    SKIP = "skip"  #: ignore the commit


class Stated(NamedTuple):
    """A text and its position: `pipelines.yml:7`."""

    text: str
    position: str


class RegistrySubject(NamedTuple):
    """A subject in a schema registry."""

    url: str
    subject: str


class Coding(NamedTuple):
    """The schema of Avro or Protobuf values."""

    schema: Stated  #: JSON of Avro; or the absolute path of a file; empty with a registry
    message: Stated | None  #: of Protobuf
    confluent: bool  #: whether values begin with a zero byte and a schema id
    schema_id: int | None
    registry: RegistrySubject | None = None  #: where the schema is, as the latest version of a subject


class TopicInput(NamedTuple):
    """Records of a topic."""

    topic: str
    starting: str = "earliest"  #: or latest; for a flow without a checkpoint
    batch_rows_max: int | None = None
    options: Mapping[str, str] = {}  #: of the data source

    @property
    def label(self) -> str:
        return f"topic {self.topic}"


class FilesInput(NamedTuple):
    """Files of a directory, including new ones."""

    path: Path
    batch_files_max: int | None = None

    @property
    def label(self) -> str:
        return f"files {self.path}"


class DeltaInput(NamedTuple):
    """Rows of a Delta table, including appended ones."""

    path: Path
    starting: str = "earliest"  #: or latest; for a flow without a checkpoint
    batch_files_max: int | None = None
    changes: Changes = Changes.FAIL

    @property
    def label(self) -> str:
        return f"delta {self.path}"


class JdbcInput(NamedTuple):
    """Rows of a database table, and new ones with greater values of a column."""

    database: Database
    growing: str  #: the incrementing column

    @property
    def label(self) -> str:
        return self.database.label


Input = TopicInput | FilesInput | DeltaInput | JdbcInput


class Expectation(NamedTuple):
    """A condition that each row should satisfy."""

    name: str
    condition: Stated
    action: ExpectationAction


class Watermark(NamedTuple):
    """How late an event may be."""

    column: str
    delay: str


class Trigger(NamedTuple):
    """When a flow runs; `interval` only for that kind."""

    kind: TriggerKind
    interval: str = ""


AVAILABLE_NOW = Trigger(TriggerKind.AVAILABLE_NOW)


class TopicSink(NamedTuple):
    """A topic, written in transactions."""

    topic: str
    format: Format
    key: str | None = None  #: the column of the key
    coding: Coding | None = None  #: of Avro and Protobuf

    @property
    def label(self) -> str:
        return f"topic {self.topic}"


class DeltaSink(NamedTuple):
    """A Delta table with one commit per batch."""

    path: Path
    partition_by: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"delta {self.path}"


class ParquetSink(NamedTuple):
    """Parquet files: one directory per batch, which appears complete or not at all."""

    path: Path
    partition_by: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"parquet {self.path}"


class JdbcSink(NamedTuple):
    """A database table with one transaction per batch."""

    database: Database

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Empty: not supported."""
        return ()

    @property
    def label(self) -> str:
        return self.database.label


Sink = TopicSink | DeltaSink | ParquetSink | JdbcSink


@dataclass(frozen=True)
class Flow:
    """A flow from one input to one sink."""

    name: str
    position: str
    input: Input
    format: Format
    schema: Stated | None  #: None to infer it from a sample, for formats without decoding, or with a coding
    coding: Coding | None  #: of Avro and Protobuf
    sink: Sink
    sql: Stated | None = None
    python: Stated | None = None  #: package.module:function
    expectations: tuple[Expectation, ...] = ()
    watermark: Watermark | None = None
    output_mode: OutputMode = OutputMode.APPEND
    dead_letters: str | None = None  #: a topic
    trigger: Trigger = AVAILABLE_NOW

    @property
    def source(self) -> str:
        return self.input.label


@dataclass(frozen=True)
class Pipeline:
    """The flows of a file, in order."""

    path: Path
    state: Path
    flows: tuple[Flow, ...]
    bootstrap: str | None = None
    #: of the data source and the sink, such as kafka.security.protocol
    options: Mapping[str, str] = field(default_factory=dict)
