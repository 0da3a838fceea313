"""Writes descriptors of Protobuf as .proto files."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2 as pb

from barnabas.registry.protobuf.tokens import quoted

_FIELD = pb.FieldDescriptorProto
_LABELS = {
    _FIELD.LABEL_OPTIONAL: "optional ",
    _FIELD.LABEL_REQUIRED: "required ",
    _FIELD.LABEL_REPEATED: "repeated ",
}
_INDENT = "  "
_RANGE_ENDS = {536_870_911, 2**31 - 1}


def print_proto(file: Any) -> str:
    """Return the text of a FileDescriptorProto; equal for equal descriptors."""
    head = [f'syntax = "{file.syntax or "proto2"}";']
    if file.syntax == "editions":
        head = [f'edition = "{pb.Edition.Name(file.edition).removeprefix("EDITION_")}";']
    if file.package:
        head.append(f"package {file.package};")
    blocks = ["\n".join(head)]
    imports = list(_imports(file))
    if imports:
        blocks.append("\n".join(imports))
    options = [f"option {name} = {value};" for name, value in _options(file.options)]
    if options:
        blocks.append("\n".join(options))
    printer = _Printer(file)
    messages = {each.name: each for each in file.message_type}
    blocks += ["\n".join(printer.message(each)) for each in _messages(file.message_type, file.extension)]
    blocks += ["\n".join(printer.enum(enum)) for enum in file.enum_type]
    blocks += ["\n".join(lines) for lines in printer.extensions(file.extension, messages)]
    blocks += ["\n".join(_service(service)) for service in file.service]
    return "\n\n".join(blocks) + "\n"


def _imports(file: Any) -> Iterator[str]:
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    for index, name in enumerate(file.dependency):
        kind = "public " if index in public else "weak " if index in weak else ""
        yield f"import {kind}{quoted(name)};"


class _Printer:
    def __init__(self, file: Any) -> None:
        self._syntax = file.syntax
        self._scope = f".{file.package}" if file.package else ""

    def message(self, message: Any, keyword: str = "message ", tail: str = "") -> list[str]:
        """Return the lines of a message."""
        inner = [*self._reserved(message), *_option_lines(message.options, "map_entry")]
        synthetic = {field.oneof_index for field in message.field if field.proto3_optional}
        oneofs: defaultdict[int, list[Any]] = defaultdict(list)
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index not in synthetic:
                oneofs[field.oneof_index].append(field)
        nested = {each.name: each for each in message.nested_type}
        positions = {name: position for position, name in enumerate(nested)}
        messages = deque(_messages(message.nested_type, (*message.field, *message.extension)))
        for field in message.field:
            entry = _map_entry(field, nested)
            # serializers count the messages of maps: one that is before a map must stay there
            while entry is not None and messages and positions[messages[0].name] < positions[entry.name]:
                inner += ["", *self.message(messages.popleft())]
            if not field.HasField("oneof_index") or field.oneof_index in synthetic:
                inner += self._field(field, nested)
            elif field.oneof_index in oneofs:
                inner += self._oneof(
                    message.oneof_decl[field.oneof_index], oneofs.pop(field.oneof_index), nested
                )
        for each in messages:
            inner += ["", *self.message(each)]
        for enum in message.enum_type:
            inner += ["", *self.enum(enum)]
        for lines in self.extensions(message.extension, nested):
            inner += ["", *lines]
        name = f"{keyword}{message.name}{tail}" if keyword else tail
        return [f"{name} {{", *_indented(_without_leading_gap(inner)), "}"]

    def _oneof(self, oneof: Any, fields: list[Any], nested: Mapping[str, Any]) -> list[str]:
        inner = _option_lines(oneof.options)
        for field in fields:
            inner += self._field(field, nested, has_label=False)
        return [f"oneof {oneof.name} {{", *_indented(inner), "}"]

    def _field(self, field: Any, nested: Mapping[str, Any], *, has_label: bool = True) -> list[str]:
        """:param nested: Messages that are declared beside the field, by name."""
        label = _LABELS[field.label] if has_label else ""
        if label == "optional " and self._syntax and not field.proto3_optional:
            label = ""
        entry = _map_entry(field, nested)
        if entry is not None:
            kind = f"map<{_type_name(entry.field[0])}, {_type_name(entry.field[1])}>"
            return [f"{kind} {field.name} = {field.number}{_field_options(field)};"]
        if field.type == _FIELD.TYPE_GROUP:
            name = _last_name(field)
            head = f"{label}group {name} = {field.number}{_field_options(field)}"
            return self.message(nested[name], "", head)
        return [f"{label}{_type_name(field)} {field.name} = {field.number}{_field_options(field)};"]

    def enum(self, enum: Any) -> list[str]:
        """Return the lines of an enum."""
        inner = [*self._reserved(enum, behind=0), *_option_lines(enum.options)]
        for value in enum.value:
            options = [f"{name} = {text}" for name, text in _options(value.options)]
            inner.append(f"{value.name} = {value.number}{_bracketed(options)};")
        return [f"enum {enum.name} {{", *_indented(inner), "}"]

    def _reserved(self, owner: Any, behind: int = 1) -> Iterator[str]:
        ranges = [_range(each.start, each.end - behind) for each in owner.reserved_range]
        if ranges:
            yield f"reserved {', '.join(ranges)};"
        if owner.reserved_name:
            names = owner.reserved_name if self._syntax == "editions" else map(quoted, owner.reserved_name)
            yield f"reserved {', '.join(names)};"
        for each in getattr(owner, "extension_range", ()):
            options = [f"{name} = {text}" for name, text in _options(each.options)]
            yield f"extensions {_range(each.start, each.end - behind)}{_bracketed(options)};"

    def extensions(self, fields: Iterable[Any], nested: Mapping[str, Any]) -> Iterator[list[str]]:
        """Yield the lines of each message that is extended."""
        by_extendee: dict[str, list[Any]] = {}
        for field in fields:
            by_extendee.setdefault(field.extendee, []).append(field)
        for extendee, extended in by_extendee.items():
            inner = [line for field in extended for line in self._field(field, nested)]
            yield [f"extend {extendee} {{", *_indented(inner), "}"]


def _messages(declared: Iterable[Any], fields: Iterable[Any]) -> Iterator[Any]:
    """Yield the messages without those of maps and groups, which are part of their fields."""
    groups = {_last_name(field) for field in fields if field.type == _FIELD.TYPE_GROUP}
    return (each for each in declared if not each.options.map_entry and each.name not in groups)


def _map_entry(field: Any, nested: Mapping[str, Any]) -> Any:
    """Return the message that a map consists of; None for other fields."""
    entry = nested.get(_last_name(field)) if field.label == _FIELD.LABEL_REPEATED else None
    return entry if entry is not None and entry.options.map_entry else None


def _last_name(field: Any) -> str:
    return str(field.type_name.rpartition(".")[2])


def _service(service: Any) -> list[str]:
    inner = _option_lines(service.options)
    for method in service.method:
        request = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        response = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        head = f"rpc {method.name} ({request}) returns ({response})"
        options = _option_lines(method.options)
        inner += [f"{head} {{", *_indented(options), "}"] if options else [f"{head};"]
    return [f"service {service.name} {{", *_indented(inner), "}"]


def _type_name(field: Any) -> str:
    if field.type_name:
        return str(field.type_name)
    return str(_FIELD.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _range(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last in _RANGE_ENDS else last}"


def _field_options(field: Any) -> str:
    options = []
    if field.HasField("default_value"):
        text = field.default_value
        if field.type == _FIELD.TYPE_STRING:
            text = quoted(text)
        elif field.type == _FIELD.TYPE_BYTES:
            text = f'"{text}"'
        options.append(f"default = {text}")
    if field.json_name and field.json_name != _default_json_name(field.name):
        options.append(f"json_name = {quoted(field.json_name)}")
    options += [f"{name} = {text}" for name, text in _options(field.options)]
    return _bracketed(options)


def _default_json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _bracketed(options: list[str]) -> str:
    return f" [{', '.join(options)}]" if options else ""


def _option_lines(options: Any, *hidden: str) -> list[str]:
    return [f"option {name} = {value};" for name, value in _options(options) if name not in hidden]


def _options(options: Any) -> Iterator[tuple[str, str]]:
    """Yield names and values of options, those of descriptor.proto before others.

    Options of others in a descriptor are left out: what they are called depends on what this process has imported.
    """
    for described, value in options.ListFields():
        if described.is_extension:
            continue
        if described.name == "uninterpreted_option":
            for option in value:
                yield _option_name(option), _uninterpreted(option)
        elif described.message_type is not None and not described.is_repeated:
            for name, text in _options(value):
                yield f"{described.name}.{name}", text
        elif described.message_type is None and not described.is_repeated:
            yield described.name, _known(described, value)


def _known(described: Any, value: Any) -> str:
    if described.enum_type is not None:
        return str(described.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else str(value)


def _option_name(option: Any) -> str:
    return ".".join(f"({part.name_part})" if part.is_extension else part.name_part for part in option.name)


def _uninterpreted(option: Any) -> str:
    for name in ("identifier_value", "positive_int_value", "negative_int_value"):
        if option.HasField(name):
            return str(getattr(option, name))
    if option.HasField("double_value"):
        return repr(option.double_value)
    if option.HasField("string_value"):
        return quoted(option.string_value.decode("utf-8", "backslashreplace"))
    return f"{{ {option.aggregate_value} }}"


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"{_INDENT}{line}" if line else "" for line in lines]


def _without_leading_gap(lines: list[str]) -> list[str]:
    return lines[1:] if lines[:1] == [""] else lines
