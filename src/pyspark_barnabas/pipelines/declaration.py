"""What a pipelines file says; what only Spark can check is checked when a flow is built."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from pyspark_barnabas.pipelines.databases import Database

#: What names of columns of ours begin with, so they are nobody else's.
RESERVED = "__"


class Format(Enum):
    """How bytes become columns, and columns bytes."""

    JSON = "json"
    CSV = "csv"
    RAW = "raw"  #: the record's own columns: key, value, topic, partition, offset, timestamp
    PARQUET = "parquet"  #: rows already, of files and of tables
    AVRO = "avro"
    PROTOBUF = "protobuf"


class ExpectationAction(Enum):
    """What becomes of a row that is not as expected, the weightiest first."""

    FAIL = "fail"
    DEAD_LETTER = "dead_letter"
    DROP = "drop"


class OutputMode(Enum):
    """Which rows of an aggregation a batch gives."""

    APPEND = "append"
    UPDATE = "update"


class TriggerKind(Enum):
    """When a flow runs."""

    ONCE = "once"  #: all there is, in one batch
    AVAILABLE_NOW = "available_now"  #: all there is, in batches
    INTERVAL = "interval"  #: until it is stopped


class Changes(Enum):
    """What a flow does at a commit of a Delta table that deletes or rewrites rows."""

    FAIL = "fail"
    SKIP = "skip"  #: nothing of that commit is read


class Stated(NamedTuple):
    """A text, and where it stands: `pipelines.yml:7`."""

    text: str
    position: str


class Coding(NamedTuple):
    """How Avro and Protobuf are told."""

    schema: Stated  #: JSON of Avro; or the path of a file, which is absolute
    message: Stated | None  #: of Protobuf
    confluent: bool  #: whether values begin with a byte 0 and a schema's number
    schema_id: int | None


class TopicInput(NamedTuple):
    """Records of a topic."""

    topic: str
    starting: str  #: earliest or latest; where a flow has no checkpoint yet
    batch_rows_max: int | None
    options: Mapping[str, str]  #: of the data source

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return f"topic {self.topic}"


class FilesInput(NamedTuple):
    """Files of a directory, and those that come into it."""

    path: Path
    batch_files_max: int | None

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return f"files {self.path}"


class DeltaInput(NamedTuple):
    """Rows of a Delta table, and those that are appended to it."""

    path: Path
    starting: str  #: earliest or latest; where a flow has no checkpoint yet
    batch_files_max: int | None
    changes: Changes

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return f"delta {self.path}"


class JdbcInput(NamedTuple):
    """Rows of a database's table, and those that come with greater values of a column."""

    database: Database
    growing: str  #: the column

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return self.database.label


Input = TopicInput | FilesInput | DeltaInput | JdbcInput


class Expectation(NamedTuple):
    """What is to be true of each row."""

    name: str
    condition: Stated
    action: ExpectationAction


class Watermark(NamedTuple):
    """How late an event may be."""

    column: str
    delay: str


class Trigger(NamedTuple):
    """When a flow runs; `interval` for the kind of that name."""

    kind: TriggerKind
    interval: str = ""


class TopicSink(NamedTuple):
    """A topic, written in transactions."""

    topic: str
    format: Format
    key: str | None  #: the column that becomes the key
    coding: Coding | None = None  #: of Avro and Protobuf

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return f"topic {self.topic}"


class DeltaSink(NamedTuple):
    """A Delta table: one commit for each batch."""

    path: Path
    partition_by: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return f"delta {self.path}"


class ParquetSink(NamedTuple):
    """Parquet files: a directory for each batch, which is there whole or not at all."""

    path: Path
    partition_by: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return f"parquet {self.path}"


class JdbcSink(NamedTuple):
    """A table of a database: one transaction for each batch."""

    database: Database

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Not ours to say."""
        return ()

    @property
    def label(self) -> str:
        """Return a short label for messages."""
        return self.database.label


Sink = TopicSink | DeltaSink | ParquetSink | JdbcSink


@dataclass(frozen=True)
class Flow:
    """From one place to another."""

    name: str
    position: str
    input: Input
    format: Format
    schema: (
        Stated | None
    )  #: None to be taken from a sample, where there is nothing to decode, or with a coding
    coding: Coding | None  #: of Avro and Protobuf
    sql: Stated | None
    python: Stated | None  #: package.module:function
    expectations: tuple[Expectation, ...]
    watermark: Watermark | None
    output_mode: OutputMode
    sink: Sink
    dead_letters: str | None  #: a topic
    trigger: Trigger

    @property
    def source(self) -> str:
        """Return a short label for messages."""
        return self.input.label


@dataclass(frozen=True)
class Pipeline:
    """A file's flows, in its order."""

    path: Path
    bootstrap: str | None
    state: Path
    options: Mapping[str, str]  #: of the data source and the sink, such as kafka.security.protocol
    flows: tuple[Flow, ...]
