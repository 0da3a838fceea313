"""Parsing of pipelines files, and errors in them."""

import pickle
from pathlib import Path

import pytest

from pyspark_barnabas.pipelines.declaration import (
    Coding,
    DeltaSink,
    ExpectationAction,
    FilesInput,
    Format,
    OutputMode,
    ParquetSink,
    RegistrySubject,
    Stated,
    TopicInput,
    TopicSink,
    Trigger,
    TriggerKind,
    Watermark,
)
from pyspark_barnabas.pipelines.parser import PipelineFileError, read_pipeline

WHOLE = """\
bootstrap: 127.0.0.1:9092
state: state
options: {kafka.client.id: pipelines}
flows:
  clean:
    from: {topic: orders, format: json, schema: 'id BIGINT, at TIMESTAMP', starting: latest, batch_rows_max: 10}
    watermark: {column: at, delay: 10 minutes}
    sql: SELECT id, at FROM input
    expect:
      - {name: known, condition: id IS NOT NULL, action: dead_letter}
    to: {delta: tables/orders, partition_by: [id]}
    dead_letters: orders-dead
    trigger: {interval: 10 seconds}
  out:
    from: {files: tables/in, format: parquet, schema: 'id BIGINT', batch_files_max: 3}
    python: jobs.orders:clean
    to: {topic: copies, key: id}
    trigger: once
  counts:
    from: {topic: orders, format: raw}
    output_mode: update
    to: {parquet: files}
"""

FLOW = """\
bootstrap: b:9092
flows:
  one:
    from: {topic: in, format: raw}
    to: {topic: out}
"""


def written(folder: Path, text: str) -> Path:
    position = folder / "pipelines.yml"
    position.write_text(text)
    return position


def test_a_file_is_parsed_with_its_flows_in_order(tmp_path: Path) -> None:
    position = written(tmp_path, WHOLE)
    pipeline = read_pipeline(position)
    clean, out, counts = pipeline.flows
    assert (pipeline.bootstrap, pipeline.state) == ("127.0.0.1:9092", tmp_path / "state")
    assert pipeline.options == {"kafka.client.id": "pipelines"}
    assert clean.input == TopicInput("orders", "latest", 10, {})
    assert clean.watermark == Watermark("at", "10 minutes")
    assert clean.sql == ("SELECT id, at FROM input", f"{position}:8")
    [known] = clean.expectations
    assert known == ("known", ("id IS NOT NULL", f"{position}:10"), ExpectationAction.DEAD_LETTER)
    assert clean.sink == DeltaSink(tmp_path / "tables" / "orders", ("id",))
    assert clean.trigger == Trigger(TriggerKind.INTERVAL, "10 seconds")
    assert (clean.source, clean.sink.label) == ("topic orders", f"delta {tmp_path}/tables/orders")
    assert out.input == FilesInput(tmp_path / "tables" / "in", 3)
    assert out.python == ("jobs.orders:clean", f"{position}:16")
    assert out.sink == TopicSink("copies", Format.JSON, "id")
    assert (out.source, out.sink.label) == (f"files {tmp_path}/tables/in", "topic copies")
    assert counts.output_mode is OutputMode.UPDATE
    assert counts.sink == ParquetSink(tmp_path / "files", ())
    assert counts.sink.label == f"parquet {tmp_path}/files"
    assert counts.trigger == Trigger(TriggerKind.AVAILABLE_NOW)


def test_a_flow_can_be_sent_to_another_process(tmp_path: Path) -> None:
    database = "{jdbc: {url: 'jdbc:x:y', table: t}}"
    for text in (FLOW, FLOW.replace("{topic: out}", database)):
        pipeline = read_pipeline(written(tmp_path, text))
        assert pickle.loads(pickle.dumps(pipeline)) == pipeline


def test_state_is_kept_beside_the_file_by_default(tmp_path: Path) -> None:
    assert read_pipeline(written(tmp_path, FLOW)).state == tmp_path / ".pipelines"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "flows:\n  one:",
            "flow:\n  one:",
            "2: unknown key 'flow' in the file; did you mean flows?",
        ),
        ("  one:", "  a b:", "3: a key of flows is 'a b': must be 1 to 100 letters"),
        ("bootstrap: b:9092\n", "", "3: flows.one is a mapping: reads or writes topics"),
        ("topic: in,", "topics: in,", "did you mean topic?"),
        ("topic: in, ", "", "must have exactly one of topic, files, delta, jdbc; it has none"),
        ("raw}", "arvo}", "4: flows.one.from.format is 'arvo': must be json, raw, avro, protobuf or csv"),
        ("raw}", "parquet}", "must be json, raw, avro, protobuf or csv"),
        (
            "topic: in, format: raw",
            "files: in, schema: a INT, format: raw",
            "must be json, csv or parquet",
        ),
        ("raw}", "csv}", "must have schema: the columns"),
        ("raw}", "avro}", "must have schema: an .avsc file, or the JSON itself"),
        ("raw}", "avro, schema: a.avsc, message: a}", "can only be used with protobuf"),
        ("raw}", "protobuf, schema: a.proto}", "must have message: its name in full, such as shop.Order"),
        ("raw}", "protobuf, message: a.B}", "must have schema: a .proto file, or what protoc"),
        ("raw}", "avro, schema: a.avsc, framing: some}", "must be none or confluent"),
        ("raw}", "avro, schema: a.avsc, schema_id: 7}", "can only be used with framing: confluent"),
        (
            "raw}",
            "avro, schema: a.avsc, framing: confluent, schema_id: 2147483648}",
            "must be a whole number from 0 to 2147483647",
        ),
        ("raw}", "raw, framing: confluent}", "can only be used with avro or protobuf"),
        (
            "topic: in, format: raw",
            "files: in, schema: a INT, format: avro",
            "must be json, csv or parquet",
        ),
        (
            "{topic: out}",
            "{topic: out, format: avro, schema: a.avsc, framing: confluent}",
            "must have schema_id: the number that the schema registry",
        ),
        ("{topic: out}", "{topic: out, schema: a.avsc}", "can only be used with avro or protobuf"),
        ("raw}", "raw, schema: 'a INT'}", "must not be set with raw"),
        ("raw}", "raw, starting: first}", "must be earliest or latest"),
        ("raw}", "raw, batch_rows_max: 0}", "must be a whole number of at least 1"),
        ("{topic: out}", "{}", "must have exactly one of topic, delta, parquet, jdbc; it has none"),
        ("{topic: out}", "{topic: out, delta: x}", "it has topic, delta"),
        ("{topic: out}", "{topic: out, partition_by: [a]}", "can only be used with delta or parquet"),
        ("{topic: out}", "{delta: x, key: a}", "can only be used with topic"),
        ("{topic: out}", "{delta: 's3://x'}", "must be a path of this machine"),
        ("{topic: out}", "{topic: out, format: csv}", "must be json, raw, avro or protobuf"),
        (
            "{topic: out}",
            "{topic: out, format: raw, key: a}",
            "must not be set with raw, which writes the column key as the key",
        ),
        ("{topic: out}", "{topic: in}", "4: flows.one is a mapping: writes to topic in, which it reads"),
        ("{topic: out}", "{topic: out}\n    dead_letters: in", "writes to topic in, which it reads"),
        (
            "{topic: out}",
            "{topic: out}\n    sql: x\n    python: a:b",
            "7: flows.one.python is 'a:b': must not be set together with sql",
        ),
        ("{topic: out}", "{topic: out}\n    python: a.b", "must be package.module:function"),
        (
            "{topic: out}",
            "{topic: out}\n    trigger: always",
            "6: flows.one.trigger is 'always': must be once",
        ),
        ("{topic: out}", "{topic: out}\n    trigger: {interval: 5}", "must be a duration such as"),
        ("{topic: out}", "{topic: out}\n    watermark: {column: at}", "must have delay"),
        ("{topic: out}", "{topic: out}\n    expect: [{name: a, condition: b}]", "must have action"),
        (
            "{topic: out}",
            "{topic: out}\n    expect: [{name: a, condition: b, action: dead_letter}]",
            "6: flows.one.expect[0].action is 'dead_letter': needs dead_letters: TOPIC in the flow",
        ),
        (
            "{topic: out}",
            "{topic: out}\n    expect:" + 2 * "\n    - {name: a, condition: b, action: drop}",
            "8: flows.one.expect[1].name is 'a': is repeated, first in line 7",
        ),
    ],
)
def test_an_error_has_file_line_value_and_valid_values(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in FLOW
    position = written(tmp_path, FLOW.replace(old, new))
    with pytest.raises(PipelineFileError) as caught:
        read_pipeline(position)
    assert str(caught.value).startswith(f"{position}:")
    assert says in str(caught.value)


def test_an_avro_schema_is_a_file_or_inline_json(tmp_path: Path) -> None:
    inline = """{"type": "record", "name": "R", "fields": []}"""
    text = FLOW.replace("raw}", f"avro, schema: '{inline}'}}").replace(
        "{topic: out}",
        "{topic: out, format: protobuf, schema: a.proto, message: a.B, framing: confluent, schema_id: 7}",
    )
    position = written(tmp_path, text)
    [flow] = read_pipeline(position).flows
    assert (flow.schema, flow.coding) == (None, Coding(Stated(inline, f"{position}:4"), None, False, None))
    message = Stated("a.B", f"{position}:5")
    coding = Coding(Stated(str(tmp_path / "a.proto"), f"{position}:5"), message, True, 7)
    assert flow.sink == TopicSink("out", Format.PROTOBUF, None, coding)


def test_a_schema_may_be_in_a_registry(tmp_path: Path) -> None:
    text = FLOW.replace("raw}", "avro, registry: 'http://r:8081'}").replace(
        "{topic: out}",
        "{topic: out, format: protobuf, message: a.B, registry: 'http://r:8081', subject: s}",
    )
    position = written(tmp_path, text)
    [flow] = read_pipeline(position).flows
    assert flow.coding == Coding(
        Stated("", f"{position}:4"), None, True, None, RegistrySubject("http://r:8081", "in-value")
    )
    assert isinstance(flow.sink, TopicSink)
    assert flow.sink.coding is not None
    assert flow.sink.coding.registry == RegistrySubject("http://r:8081", "s")


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PipelineFileError, match=r"none\.yml: cannot be read"):
        read_pipeline(tmp_path / "none.yml")


def test_paths_are_absolute_however_the_file_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b").mkdir()
    written(tmp_path / "a b", FLOW.replace("{topic: out}", "{delta: tables/out}"))
    monkeypatch.chdir(tmp_path)
    for name in ("a b/pipelines.yml", f"../{tmp_path.name}/a b/pipelines.yml"):
        pipeline = read_pipeline(Path(name))
        assert pipeline.state.is_absolute()
        assert pipeline.state.resolve() == tmp_path / "a b" / ".pipelines"
        [flow] = pipeline.flows
        assert isinstance(flow.sink, DeltaSink)
        assert flow.sink.path.is_absolute()
    monkeypatch.chdir(tmp_path / "a b")
    assert read_pipeline(Path("pipelines.yml")).state == tmp_path / "a b" / ".pipelines"


@pytest.mark.parametrize("name", ["a[1]", "a%20b"])
def test_a_directory_that_delta_rs_cannot_read_is_rejected(tmp_path: Path, name: str) -> None:
    for text in (
        FLOW.replace("{topic: out}", f"{{delta: 'tables/{name}'}}"),
        FLOW.replace("{topic: in, format: raw}", f"{{delta: 'tables/{name}'}}"),
    ):
        with pytest.raises(
            PipelineFileError, match=r"the path of a Delta table must not contain square brackets"
        ):
            read_pipeline(written(tmp_path, text))
