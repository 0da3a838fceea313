"""Loads schemas of Avro and Protobuf."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from barnabas.codecs import BinaryFormat, CodecSpec
from barnabas.codecs.errors import SchemaError
from barnabas.codecs.framing import Frame
from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import Coding, Format, RegistrySubject

_PROTOC_S = 60


def codec_spec(coding: Coding, written: Format) -> CodecSpec:
    """Return the codec of a declared schema.

    :raises FlowError: The schema does not exist, or is unsupported; with file and line.
    """
    if coding.registry is not None:
        return _checked(_registered(coding, coding.registry, written), coding)
    spec = CodecSpec(
        BinaryFormat(written.value),
        _avro(coding) if written is Format.AVRO else _protobuf(coding),
        "" if coding.message is None else coding.message.text,
        Frame(coding.confluent, coding.schema_id),
    )
    return _checked(spec, coding)


def _checked(spec: CodecSpec, coding: Coding) -> CodecSpec:
    try:
        spec.codec()
    except SchemaError as error:
        raise FlowError(f"{_where(coding)}: {error}") from error
    except ModuleNotFoundError as error:
        raise FlowError(
            f"{_where(coding)}: {error}; pip install '.[spark]' in a checkout of Barnabas brings it"
        ) from error
    return spec


def _registered(coding: Coding, registry: RegistrySubject, written: Format) -> CodecSpec:
    """Return the codec of the latest version of a subject. Values of other versions are read by their own schemas."""
    from barnabas.registry.client import RegistryClient
    from barnabas.registry.errors import RegistryError
    from barnabas.registry.schemas import InvalidSchema
    from barnabas.registry.standalone import standalone_schema

    where = f"{coding.schema.position}: registry: subject {registry.subject}"
    try:
        client = RegistryClient(registry.url)
        schema_id, schema = client.version(registry.subject)
        if schema.type.lower() != written.value:
            raise FlowError(f"{where} has a schema of type {schema.type}, not {written.value}")
        content = standalone_schema(client.parsed(schema))
    except (RegistryError, InvalidSchema, ConnectionError, ValueError) as error:
        raise FlowError(f"{where}: {error}") from error
    message = "" if coding.message is None else coding.message.text
    frame = Frame(True, coding.schema_id, registry.url, schema_id)
    return CodecSpec(BinaryFormat(written.value), content, message, frame)


def _avro(coding: Coding) -> bytes:
    text = coding.schema.text
    if not text.startswith("/"):
        return text.encode()
    content = _content(coding)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise FlowError(f"{_where(coding)} must be JSON in UTF-8: {error}") from error
    return content


def _protobuf(coding: Coding) -> bytes:
    """Return a descriptor set: the file's contents, or protoc's output for it."""
    source = Path(coding.schema.text)
    content = _content(coding)
    if source.suffix != ".proto":
        return content
    protoc = shutil.which("protoc")
    made_by = f"protoc --include_imports --descriptor_set_out={source.stem}.desc {source.name}"
    if protoc is None:
        raise FlowError(
            f"{_where(coding)} needs protoc, which is not in PATH: install it, or set schema to the output of "
            f"{made_by!r}"
        )
    with TemporaryDirectory(prefix="barnabas-protoc-") as folder:
        output = Path(folder, "set")
        command = [
            protoc,
            f"--proto_path={source.parent}",
            "--include_imports",
            f"--descriptor_set_out={output}",
        ]
        ended = subprocess.run(
            [*command, source.name], capture_output=True, text=True, timeout=_PROTOC_S, check=False
        )
        if ended.returncode != 0:
            raise FlowError(f"{_where(coding)}: {ended.stderr.strip() or 'protoc failed'}")
        return output.read_bytes()


def _content(coding: Coding) -> bytes:
    try:
        return Path(coding.schema.text).read_bytes()
    except OSError as error:
        raise FlowError(f"{_where(coding)} cannot be read: {error.strerror}") from error


def _where(coding: Coding) -> str:
    text, position = coding.schema
    return f"{position}: schema: {text}" if text.startswith("/") else f"{position}: schema"
