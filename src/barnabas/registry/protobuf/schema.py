"""A schema of Protobuf with its references."""

import base64
import binascii
from functools import cached_property
from typing import Any, Self

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.message import DecodeError

from barnabas.registry.protobuf.compatibility import decoding_problems
from barnabas.registry.protobuf.linking import keep_options, link
from barnabas.registry.protobuf.parser import parse_proto
from barnabas.registry.protobuf.printer import print_proto
from barnabas.registry.schemas import Dependencies, Incompatibility, InvalidSchema, ParsedSchema

#: The name of the file in its pool; references have the names of their imports.
_FILE_NAME = "schema.proto"


class ProtobufSchema:
    """A schema of Protobuf, from the text of a file or from its FileDescriptorProto in base64."""

    def __init__(self, file: Any, descriptor: Any) -> None:
        """:param descriptor: The FileDescriptor, linked with its imports."""
        self.descriptor = descriptor
        self._file = file

    @classmethod
    def parse(cls, text: str, dependencies: Dependencies, *, is_new: bool) -> Self:
        """:raises InvalidSchema: With what is wrong."""
        file = _file_of(text, _unused_name(dependencies))
        linked = {name: _file_of(each, name) for name, each in dependencies.items()}
        return cls(file, link(file, linked))

    @cached_property
    def canonical(self) -> str:
        return print_proto(self._file)

    @cached_property
    def normalized(self) -> str:
        """The file with full names, imports, fields and custom options in order."""
        file = self._resolved()
        keep_options(self._file, file)
        dependencies = sorted(file.dependency)
        public = {file.dependency[index] for index in file.public_dependency}
        weak = {file.dependency[index] for index in file.weak_dependency}
        file.dependency[:] = dependencies
        file.public_dependency[:] = [index for index, name in enumerate(dependencies) if name in public]
        file.weak_dependency[:] = [index for index, name in enumerate(dependencies) if name in weak]
        for message in file.message_type:
            _sort_fields(message)
        return print_proto(file)

    @cached_property
    def serialized(self) -> str:
        """The FileDescriptorProto in base64, as format=serialized returns it."""
        return base64.b64encode(self._resolved().SerializeToString(deterministic=True)).decode()

    def _resolved(self) -> Any:
        file = pb.FileDescriptorProto()
        self.descriptor.CopyToProto(file)
        return file

    def descriptor_set(self) -> bytes:
        """Return a FileDescriptorSet of the file and all that it imports, those first that others import."""
        files: dict[str, Any] = {}

        def add(descriptor: Any) -> None:
            for imported in descriptor.dependencies:
                if imported.name not in files:
                    add(imported)
            files[descriptor.name] = pb.FileDescriptorProto()
            descriptor.CopyToProto(files[descriptor.name])

        add(self.descriptor)
        data: bytes = pb.FileDescriptorSet(file=files.values()).SerializeToString(deterministic=True)
        return data

    def problems_with(self, writer: ParsedSchema) -> list[Incompatibility]:
        """Return why this schema cannot read some data of another."""
        assert isinstance(writer, ProtobufSchema)
        return decoding_problems(self.descriptor, writer.descriptor)


def _unused_name(dependencies: Dependencies) -> str:
    name = _FILE_NAME
    while name in dependencies:
        name = f"_{name}"
    return name


def _file_of(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a text or of base64."""
    try:
        data = base64.b64decode(text, validate=True)
        file = pb.FileDescriptorProto.FromString(data)
    except (binascii.Error, DecodeError, ValueError):
        return parse_proto(text, name)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
    file.name = name
    if file.syntax == "proto2":
        file.ClearField("syntax")
    return file


def _sort_fields(message: Any) -> None:
    message.field.sort(key=lambda field: field.number)
    for nested in message.nested_type:
        _sort_fields(nested)
