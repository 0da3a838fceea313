"""Reads a pipelines file; every error names file and line, the value and what would be right."""

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

import yaml

from barnabas.base.yaml_nodes import YamlError, YamlNode, read_yaml
from pyspark_barnabas.paths import table_flaw
from pyspark_barnabas.pipelines.databases import DATABASE_KEYS, read_column, read_database
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
    Sink,
    Stated,
    TopicInput,
    TopicSink,
    Trigger,
    TriggerKind,
    Watermark,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_DURATION = re.compile(r"[1-9]\d* (?:millisecond|second|minute|hour|day|week)s?")
_DURATION_EXPECTED = "must be a duration such as '10 seconds' or '5 minutes'"

_EnumT = TypeVar("_EnumT", bound=Enum)


class PipelineFileError(ValueError):
    """An invalid pipelines file: file and line, the value, and what would be right."""


def read_pipeline(path: Path) -> Pipeline:
    """Read a file.

    :raises PipelineFileError: When it is invalid.
    """
    try:
        return read_yaml(path, lambda node: _Reader(path).pipeline(node))
    except YamlError as error:
        where = path if error.line is None else f"{path}:{error.line}"
        raise PipelineFileError(f"{where}: {error.problem}") from None


_FLOW_KEYS = (
    "from",
    "sql",
    "python",
    "expect",
    "watermark",
    "output_mode",
    "to",
    "dead_letters",
    "trigger",
)
_CODING_KEYS = ("message", "framing", "schema_id")
_TOPIC_INPUT_KEYS = ("topic", "format", "schema", *_CODING_KEYS, "starting", "batch_rows_max", "options")
_TOPIC_SINK_KEYS = ("topic", "format", "key", "schema", *_CODING_KEYS)
_AVRO_SCHEMA = "an .avsc file, or the JSON itself"
_PROTOBUF_SCHEMA = "a .proto file, or what protoc --descriptor_set_out --include_imports makes of it"
_SCHEMA_ID_MAX = 2**31 - 1
#: Keys of an input by the key that determines its kind.
_INPUT_KEYS = {
    "topic": _TOPIC_INPUT_KEYS,
    "files": ("files", "format", "schema", "batch_files_max"),
    "delta": ("delta", "starting", "batch_files_max", "changes"),
    "jdbc": ("jdbc", "growing"),
}


class _Reader:
    """Reads one file; paths in it are relative to its directory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.parent.absolute()

    def pipeline(self, node: YamlNode) -> Pipeline:
        keys = node.mapping(("bootstrap", "state", "options", "flows"))
        flows_node = _needed(node, keys, "flows", "the flows by their names")
        flows = tuple(self._flow(name, each) for name, each in flows_node.mapping().items())
        if not flows:
            flows_node.fail("must have at least one flow")
        bootstrap = keys["bootstrap"].text() if "bootstrap" in keys else None
        for flow, each in zip(flows, flows_node.mapping().values(), strict=True):
            if bootstrap is None and _needs_brokers(flow):
                each.fail("reads or writes topics, so the file must have bootstrap: HOST:PORT")
        self._check_apart(flows, flows_node.mapping())
        state = self._file(keys["state"]) if "state" in keys else self._folder / ".pipelines"
        options = _options(keys["options"]) if "options" in keys else {}
        return Pipeline(self._path, bootstrap, state, options, flows)

    def _check_apart(self, flows: tuple[Flow, ...], nodes: Mapping[str, YamlNode]) -> None:
        """Check that no flow reads the topic that it writes."""
        for flow in flows:
            written = {flow.dead_letters, flow.sink.topic if isinstance(flow.sink, TopicSink) else None}
            if isinstance(flow.input, TopicInput) and flow.input.topic in written:
                nodes[flow.name].fail(f"writes to topic {flow.input.topic}, which it reads, for ever")
            if flow.source == flow.sink.label:
                nodes[flow.name].fail(f"writes to {flow.source}, which it reads, for ever")

    def _flow(self, name: str, node: YamlNode) -> Flow:
        if not _NAME.fullmatch(name):
            node.fail("the name of a flow must be 1 to 100 letters, digits, underscores and hyphens")
        keys = node.mapping(_FLOW_KEYS)
        if "sql" in keys and "python" in keys:
            keys["python"].fail("is one too many: a flow has sql or python")
        source = _needed(node, keys, "from", "where rows come from")
        given = source.mapping({key for keys in _INPUT_KEYS.values() for key in keys})
        kind = next((each for each in ("files", "delta", "jdbc") if each in given), "topic")
        given = source.mapping(_INPUT_KEYS[kind])
        written_as = _format_of_input(source, given)
        coding = self._coding(source, given, written_as, schema_id_needed=False)
        flow = Flow(
            name=name,
            position=self._at(node),
            input=self._input(kind, source, given),
            format=written_as,
            schema=self._stated(given["schema"]) if "schema" in given and coding is None else None,
            coding=coding,
            sql=self._stated(keys["sql"]) if "sql" in keys else None,
            python=self._function(keys["python"]) if "python" in keys else None,
            expectations=self._expectations(keys["expect"]) if "expect" in keys else (),
            watermark=_watermark(keys["watermark"]) if "watermark" in keys else None,
            output_mode=_word(keys["output_mode"], OutputMode)
            if "output_mode" in keys
            else OutputMode.APPEND,
            sink=self._sink(_needed(node, keys, "to", "where rows go")),
            dead_letters=keys["dead_letters"].text() if "dead_letters" in keys else None,
            trigger=_trigger(keys["trigger"]) if "trigger" in keys else Trigger(TriggerKind.AVAILABLE_NOW),
        )
        _check_schema(source, given, flow)
        if flow.dead_letters is None:
            for index, each in enumerate(flow.expectations):
                if each.action is ExpectationAction.DEAD_LETTER:
                    action = keys["expect"].items()[index].mapping()["action"]
                    action.fail("needs dead_letters: TOPIC in the flow, for the rows to go to")
        return flow

    def _input(self, kind: str, node: YamlNode, given: Mapping[str, YamlNode]) -> Input:
        files_max = given["batch_files_max"].whole(1) if "batch_files_max" in given else None
        match kind:
            case "files":
                return FilesInput(self._file(given["files"]), files_max)
            case "delta":
                changes = _word(given["changes"], Changes) if "changes" in given else Changes.FAIL
                return DeltaInput(self._table(given["delta"]), _starting(given), files_max, changes)
            case "jdbc":
                keys = given["jdbc"].mapping(DATABASE_KEYS)
                database = read_database(given["jdbc"], keys, self._folder)
                growing = _needed(
                    node, given, "growing", "a column whose values grow, such as a number of rows"
                )
                return JdbcInput(database, read_column(growing))
        return _topic_input(node, given)

    def _expectations(self, node: YamlNode) -> tuple[Expectation, ...]:
        found: list[Expectation] = []
        for each in node.items():
            keys = each.mapping(("name", "condition", "action"))
            name_node = _needed(each, keys, "name", "a name that errors and dead letters can tell")
            if name_node.text() in {other.name for other in found}:
                name_node.fail("comes twice: names tell expectations apart")
            condition = _needed(each, keys, "condition", "a condition in SQL")
            action = _needed(each, keys, "action", "fail, dead_letter or drop")
            found.append(
                Expectation(name_node.text(), self._stated(condition), _word(action, ExpectationAction))
            )
        return tuple(found)

    def _function(self, node: YamlNode) -> Stated:
        if not _FUNCTION.fullmatch(node.text()):
            node.fail("must be package.module:function, a function from DataFrame to DataFrame")
        return self._stated(node)

    def _sink(self, node: YamlNode) -> Sink:
        keys = node.mapping((*_TOPIC_SINK_KEYS, "delta", "parquet", "partition_by", "jdbc"))
        kinds = [kind for kind in ("topic", "delta", "parquet", "jdbc") if kind in keys]
        if len(kinds) != 1:
            node.fail(
                f"must have exactly one of topic, delta, parquet, jdbc; it has {', '.join(kinds) or 'none'}"
            )
        [kind] = kinds
        for each in keys:
            if each in _TOPIC_SINK_KEYS[1:] and kind != "topic":
                keys[each].fail("is for topics alone")
            if each == "partition_by" and kind == "topic":
                keys[each].fail("is for tables alone; in a topic the key chooses the partition")
            if each == "partition_by" and kind == "jdbc":
                keys[each].fail("is for delta and parquet alone")
        if kind == "jdbc":
            given = keys[kind].mapping(DATABASE_KEYS)
            return JdbcSink(read_database(keys[kind], given, self._folder))
        if kind == "topic":
            written = _word(keys["format"], Format) if "format" in keys else Format.JSON
            if written in (Format.CSV, Format.PARQUET):
                keys["format"].fail("must be json, avro, protobuf or raw")
            coding = self._coding(node, keys, written, schema_id_needed=True)
            if coding is None and "schema" in keys:
                keys["schema"].fail("is for avro and protobuf alone")
            key = keys["key"].text() if "key" in keys else None
            if key is not None and written is Format.RAW:
                keys["key"].fail("is not for raw, with which the column key is the key")
            return TopicSink(keys["topic"].text(), written, key, coding)
        path = self._table(keys[kind]) if kind == "delta" else self._file(keys[kind])
        columns = (
            tuple(each.text() for each in keys["partition_by"].items()) if "partition_by" in keys else ()
        )
        return DeltaSink(path, columns) if kind == "delta" else ParquetSink(path, columns)

    def _coding(
        self, node: YamlNode, given: Mapping[str, YamlNode], written: Format, *, schema_id_needed: bool
    ) -> Coding | None:
        if written not in (Format.AVRO, Format.PROTOBUF):
            for key in _CODING_KEYS:
                if key in given:
                    given[key].fail("is for avro and protobuf alone")
            return None
        is_avro = written is Format.AVRO
        schema = _needed(node, given, "schema", _AVRO_SCHEMA if is_avro else _PROTOBUF_SCHEMA)
        if is_avro and "message" in given:
            given["message"].fail("is for protobuf alone")
        message = None
        if not is_avro:
            message = self._stated(_needed(node, given, "message", "its name in full, such as shop.Order"))
        confluent = "framing" in given and given["framing"].word(("none", "confluent")) == "confluent"
        if "schema_id" in given and not confluent:
            given["schema_id"].fail("is for framing: confluent alone")
        schema_id = given["schema_id"].whole(0) if "schema_id" in given else None
        if schema_id is not None and schema_id > _SCHEMA_ID_MAX:
            given["schema_id"].fail(f"must be at most {_SCHEMA_ID_MAX}")
        if confluent and schema_id_needed:
            _needed(node, given, "schema_id", "the number that the schema registry has given the schema")
        if is_avro and schema.text().lstrip()[:1] in ("{", "[", '"'):
            stated = self._stated(schema)
        else:
            stated = Stated(str(self._file(schema)), self._at(schema))
        return Coding(stated, message, confluent, schema_id)

    def _file(self, node: YamlNode) -> Path:
        text = node.text()
        if "://" in text:
            node.fail("must be a path of this machine, or of a disk that all workers see")
        return self._folder / text

    def _table(self, node: YamlNode) -> Path:
        """Return a Delta table's directory."""
        path = self._file(node)
        if flaw := table_flaw(path):
            node.fail(flaw)
        return path

    def _stated(self, node: YamlNode) -> Stated:
        return Stated(node.text(), self._at(node))

    def _at(self, node: YamlNode) -> str:
        return f"{self._path}:{node.line}"


def _needed(node: YamlNode, keys: Mapping[str, YamlNode], key: str, what: str) -> YamlNode:
    if key not in keys:
        node.fail(f"must have {key}: {what}")
    return keys[key]


def _needs_brokers(flow: Flow) -> bool:
    topics = isinstance(flow.input, TopicInput) or isinstance(flow.sink, TopicSink)
    return topics or flow.dead_letters is not None


def _topic_input(node: YamlNode, given: Mapping[str, YamlNode]) -> TopicInput:
    return TopicInput(
        topic=_needed(node, given, "topic", "a topic; or files: a directory, delta: a table, or jdbc").text(),
        starting=_starting(given),
        batch_rows_max=given["batch_rows_max"].whole(1) if "batch_rows_max" in given else None,
        options=_options(given["options"]) if "options" in given else {},
    )


def _starting(given: Mapping[str, YamlNode]) -> str:
    return given["starting"].word(("earliest", "latest")) if "starting" in given else "earliest"


def _format_of_input(node: YamlNode, given: Mapping[str, YamlNode]) -> Format:
    if "delta" in given or "jdbc" in given:
        return Format.PARQUET
    found = _word(_needed(node, given, "format", "json, csv, avro, protobuf or raw"), Format)
    if found is Format.PARQUET and "files" not in given:
        given["format"].fail("must be json, csv, avro, protobuf or raw; parquet is of files")
    if found in (Format.RAW, Format.AVRO, Format.PROTOBUF) and "files" in given:
        given["format"].fail(f"must be json, csv or parquet; {found.value} is of topics")
    return found


def _check_schema(node: YamlNode, given: Mapping[str, YamlNode], flow: Flow) -> None:
    if flow.format is Format.RAW and flow.schema is not None:
        given["schema"].fail("is not for raw: its columns are the record's own")
    if isinstance(flow.input, DeltaInput | JdbcInput):
        return
    inferred = flow.format is Format.JSON and isinstance(flow.input, TopicInput)
    if flow.schema is None and flow.coding is None and flow.format is not Format.RAW and not inferred:
        node.fail("must have schema: the columns, such as 'id BIGINT, name STRING'")


def _watermark(node: YamlNode) -> Watermark:
    keys = node.mapping(("column", "delay"))
    column = _needed(node, keys, "column", "a column of type timestamp").text()
    return Watermark(column, _duration(_needed(node, keys, "delay", "how late an event may be")))


def _trigger(node: YamlNode) -> Trigger:
    """`once`, `available_now`, or `interval: 10 seconds`."""
    kinds = "must be once, available_now, or interval: a duration"
    if isinstance(node.node, yaml.ScalarNode):
        if node.text() not in ("once", "available_now"):
            node.fail(kinds)
        return Trigger(TriggerKind(node.text()))
    keys = node.mapping(("interval",))
    return Trigger(TriggerKind.INTERVAL, _duration(_needed(node, keys, "interval", "how often it runs")))


def _duration(node: YamlNode) -> str:
    if not _DURATION.fullmatch(node.text()):
        node.fail(_DURATION_EXPECTED)
    return node.text()


def _options(node: YamlNode) -> dict[str, str]:
    return {key: each.text() for key, each in node.mapping().items()}


def _word(node: YamlNode, kind: type[_EnumT]) -> _EnumT:
    return kind(node.word([each.value for each in kind]))
