"""Links files of Protobuf with those that they import, which also checks them."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool

from barnabas.registry.protobuf.parser import parse_proto
from barnabas.registry.schemas import InvalidSchema

_GOOGLE = "google/protobuf/"
#: Files that Confluent's registry knows without a reference, beside those of Google.
_BUILTIN = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
}


def link(file: Any, dependencies: Mapping[str, Any]) -> Any:
    """Return the FileDescriptor of a FileDescriptorProto.

    :param dependencies: Further files, by the names with which they are imported.
    :raises InvalidSchema: If a name cannot be resolved, or something else is wrong.
    """
    pool = DescriptorPool()
    added: set[str] = set()

    def add(each: Any) -> None:
        for name in each.dependency:
            if name not in added:
                added.add(name)
                add(_imported(name, dependencies))
        try:
            pool.Add(_linkable(each))
        except TypeError as error:
            reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
            raise InvalidSchema(reason) from None

    added.add(file.name)
    add(file)
    return pool.FindFileByName(file.name)


def _imported(name: str, dependencies: Mapping[str, Any]) -> Any:
    if name in dependencies:
        return dependencies[name]
    if name in _BUILTIN:
        return parse_proto(_BUILTIN[name], name)
    found = _of_google(name) if name.startswith(_GOOGLE) else None
    if found is None:
        raise InvalidSchema(f"the imported file '{name}' has no reference with that name")
    return found


def _of_google(name: str) -> Any:
    """Return a file that comes with Protobuf; None if there is none of that name."""
    module = name.removeprefix(_GOOGLE).removesuffix(".proto").replace("/", ".")
    if not all(word.isidentifier() for word in module.split(".")):
        return None
    try:
        found = import_module(f"google.protobuf.{module}_pb2").DESCRIPTOR
    except ImportError:
        return None
    file = pb.FileDescriptorProto()
    found.CopyToProto(file)
    return file


def _linkable(file: Any) -> Any:
    """Return the file without options that only their authors understand."""
    copy = pb.FileDescriptorProto()
    copy.CopyFrom(file)
    for options in _all_options(copy):
        options.ClearField("uninterpreted_option")
    return copy


def keep_options(source: Any, linked: Any) -> None:
    """Add the options that only their authors understand, in order, to what was linked without them."""
    for described, value in source.ListFields():
        if described.name == "options":
            if value.uninterpreted_option:
                linked.options.uninterpreted_option.extend(
                    sorted(value.uninterpreted_option, key=_option_name)
                )
        elif described.message_type is not None:
            same = getattr(linked, described.name)
            for pair in zip(value, same, strict=False) if described.is_repeated else ((value, same),):
                keep_options(*pair)


def _option_name(option: Any) -> list[tuple[str, bool]]:
    return [(part.name_part, part.is_extension) for part in option.name]


def _all_options(part: Any) -> Iterator[Any]:
    """Yield the options of a descriptor and of all within it."""
    for described, value in part.ListFields():
        if described.name == "options":
            yield value
        elif described.message_type is not None:
            for each in value if described.is_repeated else (value,):
                yield from _all_options(each)
