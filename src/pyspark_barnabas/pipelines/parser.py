"""Reads a pipelines file; every error names file and line, the value and what would be right."""

from collections.abc import Collection, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.base.yaml_nodes import YamlError, YamlNode, read_yaml
from barnabas.base.yaml_schema import (
    TEXT,
    ByKind,
    Custom,
    Key,
    Keyed,
    MappingOf,
    Schema,
    SequenceOf,
    Text,
    Variants,
    Whole,
    Word,
    word,
    word_for,
)
from pyspark_barnabas.paths import table_flaw
from pyspark_barnabas.pipelines.databases import COLUMN, DATABASE
from pyspark_barnabas.pipelines.declaration import (
    Changes,
    Coding,
    DeltaInput,
    DeltaSink,
    Expectation,
    ExpectationAction,
    FilesInput,
    Flow,
    Format,
    Input,
    JdbcInput,
    JdbcSink,
    OutputMode,
    ParquetSink,
    Pipeline,
    RegistrySubject,
    Sink,
    Stated,
    TopicInput,
    TopicSink,
    Trigger,
    TriggerKind,
    Watermark,
)


class PipelineFileError(ValueError):
    """An invalid pipelines file: file and line, the value, and what would be right."""


def read_pipeline(path: Path) -> Pipeline:
    """Read a file.

    :raises PipelineFileError: When it is invalid.
    """
    try:
        return read_yaml(path, PIPELINE.read)
    except YamlError as error:
        where = path if error.line is None else f"{path}:{error.line}"
        raise PipelineFileError(f"{where}: {error.problem}") from None


# Values


def _file(node: YamlNode) -> Path:
    """A path relative to the file's directory."""
    text = node.text()
    if "://" in text:
        node.fail("must be a path of this machine, or of a disk that all workers see")
    return node.folder / text


def _table(path: Path, node: YamlNode) -> Path:
    if flaw := table_flaw(path):
        node.fail(flaw)
    return path


def _stated(text: str, node: YamlNode) -> Stated:
    return Stated(text, node.position)


FILE = Custom(_file)
TABLE = FILE.then(_table)
STATED = TEXT.then(_stated)
OPTIONS = MappingOf(TEXT)
STARTING = word("earliest", "latest")
FUNCTION = Text(
    r"[A-Za-z_][\w.]*:[A-Za-z_]\w*",
    "must be package.module:function, a function from DataFrame to DataFrame",
)
DURATION = Text(
    r"[1-9]\d* (?:millisecond|second|minute|hour|day|week)s?",
    "must be a duration such as '10 seconds' or '5 minutes'",
)
COLUMNS = Key(STATED, required="the columns, such as 'id BIGINT, name STRING'")


# How values are written in a topic

_CODED = (Format.AVRO, Format.PROTOBUF)
_SINK_FORMATS = (Format.JSON, Format.RAW, *_CODED)
_TOPIC_FORMATS = (*_SINK_FORMATS, Format.CSV)
_CODING_KEYS = ("message", "framing", "schema_id", "registry", "subject")
_SCHEMAS = {
    Format.AVRO: "an .avsc file, or the JSON itself",
    Format.PROTOBUF: "a .proto file, or what protoc --descriptor_set_out --include_imports makes of it",
}


class _TopicKeys(NamedTuple):
    """Of an input or a sink."""

    topic: str
    format: Format = Format.JSON
    schema: Stated | None = None
    message: Stated | None = None
    framing: bool = False
    schema_id: int | None = None
    registry: Stated | None = None
    subject: str | None = None
    key: str | None = None
    starting: str = "earliest"
    batch_rows_max: int | None = None
    options: Mapping[str, str] = {}


def _topic_keys(formats: Collection[Format], *, required: bool) -> dict[str, Key]:
    return {
        "topic": Key(TEXT, required=True),
        "format": Key(word_for(formats), required=required),
        "schema": Key(STATED),
        "message": Key(STATED),
        "framing": Key(Word({"none": False, "confluent": True})),
        "schema_id": Key(Whole(0, 2**31 - 1)),
        "registry": Key(STATED),
        "subject": Key(TEXT),
    }


def _coding(keys: _TopicKeys, node: YamlNode) -> Coding | None:
    if keys.format not in _CODED:
        for key in _CODING_KEYS:
            if key in node.mapping():
                node.at(key).fail("can only be used with avro or protobuf")
        return None
    is_avro = keys.format is Format.AVRO
    if is_avro and keys.message is not None:
        node.at("message").fail("can only be used with protobuf")
    if not is_avro and keys.message is None:
        node.fail("must have message: its name in full, such as shop.Order")
    if keys.schema_id is not None and not (keys.framing or keys.registry):
        node.at("schema_id").fail("can only be used with framing: confluent")
    if keys.registry is not None:
        return _registry_coding(keys, keys.registry, node)
    if keys.subject is not None:
        node.at("subject").fail("can only be used with registry")
    schema = keys.schema
    if schema is None:
        node.fail(f"must have schema: {_SCHEMAS[keys.format]}; or registry: the URL of a schema registry")
    if not (is_avro and schema.text.lstrip()[:1] in ("{", "[", '"')):
        schema = Stated(str(FILE.read(node.at("schema"))), schema.position)
    return Coding(schema, keys.message, keys.framing, keys.schema_id)


def _registry_coding(keys: _TopicKeys, registry: Stated, node: YamlNode) -> Coding:
    """Return the coding of values that the serializers of a schema registry write."""
    if keys.schema is not None:
        node.at("schema").fail("must not be set with registry, which has the schema")
    if "framing" in node.mapping() and not keys.framing:
        node.at("framing").fail("must be confluent with registry, or left out")
    subject = RegistrySubject(registry.text, keys.subject or f"{keys.topic}-value")
    return Coding(Stated("", registry.position), keys.message, True, keys.schema_id, subject)


# Inputs


class _Source(NamedTuple):
    input: Input
    format: Format = Format.PARQUET
    schema: Stated | None = None
    coding: Coding | None = None


def _topic_source(keys: _TopicKeys, node: YamlNode) -> _Source:
    coding = _coding(keys, node)
    if keys.format is Format.RAW and keys.schema is not None:
        node.at("schema").fail("must not be set with raw: its columns are the record's own")
    if keys.format is Format.CSV and keys.schema is None:
        node.fail(f"must have schema: {COLUMNS.required}")
    topic = TopicInput(keys.topic, keys.starting, keys.batch_rows_max, keys.options)
    return _Source(topic, keys.format, keys.schema if coding is None else None, coding)


def _files_source(
    files: Path, file_format: Format, schema: Stated, batch_files_max: int | None = None
) -> _Source:
    return _Source(FilesInput(files, batch_files_max), file_format, schema)


TOPIC_INPUT_KEYS = _topic_keys(_TOPIC_FORMATS, required=True)
FILE_FORMAT = word_for((Format.JSON, Format.CSV, Format.PARQUET))

SOURCE = Variants[_Source](
    {
        "topic": Keyed(
            _TopicKeys,
            {
                **TOPIC_INPUT_KEYS,
                "starting": STARTING,
                "batch_rows_max": Whole(1),
                "options": OPTIONS,
            },
        ).then(_topic_source),
        "files": Keyed(
            _files_source,
            {
                "files": Key(FILE, required=True),
                "format": Key(FILE_FORMAT, required=True, into="file_format"),
                "schema": COLUMNS,
                "batch_files_max": Whole(1),
            },
        ),
        "delta": Keyed(
            DeltaInput,
            {
                "delta": Key(TABLE, required=True, into="path"),
                "starting": STARTING,
                "batch_files_max": Whole(1),
                "changes": word_for(Changes),
            },
        ).to(_Source),
        "jdbc": Keyed(
            JdbcInput,
            {
                "jdbc": Key(DATABASE, required=True, into="database"),
                "growing": Key(COLUMN, required="a column whose values grow, such as a number of rows"),
            },
        ).to(_Source),
    }
)


# Sinks


def _topic_sink(keys: _TopicKeys, node: YamlNode) -> TopicSink:
    coding = _coding(keys, node)
    if coding is None and keys.schema is not None:
        node.at("schema").fail("can only be used with avro or protobuf")
    if keys.framing and keys.schema_id is None and keys.registry is None:
        node.fail("must have schema_id: the number that the schema registry has given the schema")
    if keys.registry is not None and keys.schema_id is not None:
        node.at("schema_id").fail("must not be set with registry, which has the id")
    if keys.key is not None and keys.format is Format.RAW:
        node.at("key").fail("must not be set with raw, which writes the column key as the key")
    return TopicSink(keys.topic, keys.format, keys.key, coding)


PARTITION_BY = SequenceOf(TEXT).to(tuple)

SINK = Variants[Sink](
    {
        "topic": Keyed(
            _TopicKeys,
            {**_topic_keys(_SINK_FORMATS, required=False), "key": TEXT},
        ).then(_topic_sink),
        "delta": Keyed(
            DeltaSink, {"delta": Key(TABLE, required=True, into="path"), "partition_by": PARTITION_BY}
        ),
        "parquet": Keyed(
            ParquetSink, {"parquet": Key(FILE, required=True, into="path"), "partition_by": PARTITION_BY}
        ),
        "jdbc": Keyed(JdbcSink, {"jdbc": Key(DATABASE, required=True, into="database")}),
    }
)


# Flows


EXPECTATION = Keyed(
    Expectation,
    {
        "name": Key(TEXT, required="the name that appears in errors and dead letters"),
        "condition": Key(STATED, required="a condition in SQL"),
        "action": Key(word_for(ExpectationAction), required=True),
    },
)
WATERMARK = Keyed(
    Watermark,
    {
        "column": Key(TEXT, required="a column of type timestamp"),
        "delay": Key(DURATION, required="how late an event may be"),
    },
)
TRIGGER: Schema[Trigger] = ByKind(
    Word(
        {"once": Trigger(TriggerKind.ONCE), "available_now": Trigger(TriggerKind.AVAILABLE_NOW)},
        expected="must be once, available_now, or interval: a duration",
    ),
    mapping=Keyed(
        partial(Trigger, TriggerKind.INTERVAL), {"interval": Key(DURATION, required="how often it runs")}
    ),
)


def _flow(source: _Source, **keys: Any) -> Flow:
    return Flow(**source._asdict(), **keys)


def _check_flow(flow: Flow, node: YamlNode) -> Flow:
    if flow.sql is not None and flow.python is not None:
        node.at("python").fail("must not be set together with sql")
    for index, each in enumerate(flow.expectations):
        if each.action is ExpectationAction.DEAD_LETTER and flow.dead_letters is None:
            action = node.at("expect").items()[index].at("action")
            action.fail("needs dead_letters: TOPIC in the flow, the topic to which the rows are written")
    dead_letters = flow.dead_letters and f"topic {flow.dead_letters}"
    if flow.source in (flow.sink.label, dead_letters):
        node.fail(f"writes to {flow.source}, which it reads: it would never end")
    return flow


FLOW = Keyed(
    _flow,
    {
        "from": Key(SOURCE, required="where rows come from", into="source"),
        "sql": STATED,
        "python": FUNCTION.then(_stated),
        "expect": Key(SequenceOf(EXPECTATION, distinct="name").to(tuple), into="expectations"),
        "watermark": WATERMARK,
        "output_mode": word_for(OutputMode),
        "to": Key(SINK, required="where rows go", into="sink"),
        "dead_letters": TEXT,
        "trigger": TRIGGER,
    },
    context={"name": attrgetter("key"), "position": attrgetter("position")},
).then(_check_flow)
FLOW_NAME = Text(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", "must be 1 to 100 letters, digits, underscores and hyphens"
)
FLOWS = MappingOf(FLOW, name=FLOW_NAME, empty="must have at least one flow")


def _check_brokers(pipeline: Pipeline, node: YamlNode) -> Pipeline:
    for flow in pipeline.flows:
        topics = isinstance(flow.input, TopicInput) or isinstance(flow.sink, TopicSink) or flow.dead_letters
        if topics and pipeline.bootstrap is None:
            flow_node = node.at("flows").at(flow.name)
            flow_node.fail("reads or writes topics, so the file must have bootstrap: HOST:PORT")
    return pipeline


PIPELINE = Keyed(
    Pipeline,
    {
        "bootstrap": TEXT,
        "state": FILE,
        "options": OPTIONS,
        "flows": Key(FLOWS.to(lambda flows: tuple(flows.values())), required="the flows by their names"),
    },
    context={"path": attrgetter("file"), "state": lambda node: node.folder / ".pipelines"},
).then(_check_brokers)
