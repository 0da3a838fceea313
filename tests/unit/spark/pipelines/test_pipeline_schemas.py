"""Schemas from files, read directly or compiled by protoc, with errors that have file and line."""

import os
import sys
from pathlib import Path

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from barnabas.codecs import BinaryFormat
from barnabas.codecs.framing import Frame
from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import Coding, Format, Stated
from pyspark_barnabas.pipelines.schemas import codec_spec

RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'


def coding(schema: str, message: str | None = None) -> Coding:
    return Coding(Stated(schema, "p.yml:4"), None if message is None else Stated(message, "p.yml:5"), True, 7)


def descriptor_set() -> bytes:
    file = FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(file)
    return FileDescriptorSet(file=[file]).SerializeToString()


def test_avro_is_inline_json_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "r.avsc").write_text(RECORD)
    inline = codec_spec(coding(RECORD), Format.AVRO)
    assert (inline.kind, inline.frame) == (BinaryFormat.AVRO, Frame(True, 7))
    assert codec_spec(coding(str(tmp_path / "r.avsc")), Format.AVRO) == inline


def test_a_schema_error_has_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=r"^p\.yml:4: schema: the schema is not valid JSON: "):
        codec_spec(coding("{"), Format.AVRO)
    with pytest.raises(FlowError, match=r"^p\.yml:4: schema: a: null alone cannot be a column"):
        codec_spec(coding(RECORD.replace('"int"', '"null"')), Format.AVRO)
    none = tmp_path / "none.avsc"
    with pytest.raises(FlowError, match=rf"^p\.yml:4: schema: {none} cannot be read: No such file"):
        codec_spec(coding(str(none)), Format.AVRO)
    none.write_bytes(b"\xff")
    with pytest.raises(FlowError, match=rf"^p\.yml:4: schema: {none} must be JSON in UTF-8"):
        codec_spec(coding(str(none)), Format.AVRO)


def test_a_missing_package_is_reported_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "barnabas.codecs.avro", raising=False)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(
        FlowError, match=r"fastavro.*; pip install '\.\[spark\]' in a checkout of Barnabas brings it"
    ):
        codec_spec(coding(RECORD), Format.AVRO)


def test_protobuf_is_a_descriptor_set(tmp_path: Path) -> None:
    position = tmp_path / "all.desc"
    position.write_bytes(descriptor_set())
    spec = codec_spec(coding(str(position), "google.protobuf.Timestamp"), Format.PROTOBUF)
    assert spec.codec().columns.names == ["seconds", "nanos"]
    with pytest.raises(FlowError, match="there is no message Order; there are google"):
        codec_spec(coding(str(position), "Order"), Format.PROTOBUF)


@pytest.fixture
def proto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a .proto file; PATH has only an empty folder."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    position = tmp_path / "order.proto"
    position.write_text("syntax = 'proto3';")
    return position


def install_protoc(proto: Path, script: str) -> None:
    position = proto.parent / "bin" / "protoc"
    position.write_text(f"#!/bin/sh\n{script}\n")
    position.chmod(0o755)


def test_protoc_compiles_a_proto_file_to_a_descriptor_set(proto: Path) -> None:
    (proto.parent / "made").write_bytes(descriptor_set())
    message = proto.parent / "message"
    install_protoc(
        proto,
        f"echo $@ > {message}; for word; do case $word in --descriptor_set_out=*) "
        f'/bin/cp {proto.parent / "made"} "${{word#*=}}";; esac; done',
    )
    spec = codec_spec(coding(str(proto), "google.protobuf.Timestamp"), Format.PROTOBUF)
    assert spec.schema == descriptor_set()
    words = message.read_text().split()
    assert words[:2] == [f"--proto_path={proto.parent}", "--include_imports"]
    assert words[-1] == "order.proto"


def test_an_error_of_protoc_is_reported(proto: Path) -> None:
    install_protoc(proto, "echo 'order.proto:1:1: Expected a name.' >&2; exit 1")
    with pytest.raises(FlowError, match=rf"^p\.yml:4: schema: {proto}: order\.proto:1:1: Expected a name"):
        codec_spec(coding(str(proto), "Order"), Format.PROTOBUF)


def test_without_protoc_the_error_has_an_alternative(proto: Path) -> None:
    assert os.environ["PATH"] == str(proto.parent / "bin")
    with pytest.raises(FlowError, match=r"needs protoc, which is not in PATH: .* 'protoc --include_imports"):
        codec_spec(coding(str(proto), "Order"), Format.PROTOBUF)
