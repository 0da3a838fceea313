"""Files of Google: printed from their descriptors, and parsed to the same descriptors as protoc's."""

import base64
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import google.api
import google.logging
import google.longrunning
import google.protobuf
import google.rpc
import google.type
import pytest

from barnabas.registry.protobuf.schema import ProtobufSchema

PACKAGES = (google.api, google.logging, google.longrunning, google.protobuf, google.rpc, google.type)


def descriptors() -> Iterator[Any]:
    for package in PACKAGES:
        for module in pkgutil.iter_modules(package.__path__):
            if module.name.endswith("_pb2") and "grpc" not in module.name:
                yield import_module(f"{package.__name__}.{module.name}").DESCRIPTOR


def encoded(descriptor: Any) -> str:
    return base64.b64encode(descriptor.serialized_pb).decode()


def imports_of(descriptor: Any) -> dict[str, str]:
    """Return all files that a file imports, without those that every registry knows."""
    found: dict[str, str] = {}
    for imported in descriptor.dependencies:
        if not imported.name.startswith("google/protobuf/"):
            found |= imports_of(imported)
            found[imported.name] = encoded(imported)
    return found


@pytest.mark.parametrize("descriptor", list(descriptors()), ids=lambda each: each.name)
def test_a_printed_file_has_the_same_descriptor(descriptor: Any) -> None:
    imports = imports_of(descriptor)
    original = ProtobufSchema.parse(encoded(descriptor), imports, is_new=True)
    again = ProtobufSchema.parse(original.canonical, imports, is_new=True)
    assert again.canonical == original.canonical
    assert again.normalized == original.normalized
    assert again.problems_with(original) == []
