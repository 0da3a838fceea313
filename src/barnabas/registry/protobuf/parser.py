"""Parses .proto files to descriptors, as protoc does, but without resolving names."""

from typing import Any

from google.protobuf import descriptor_pb2 as pb

from barnabas.registry.protobuf.options import OptionParser
from barnabas.registry.protobuf.tokens import TokenKind

_FIELD = pb.FieldDescriptorProto
_SIZED = [f"{kind}{bits}" for kind in ("int", "uint", "sint", "fixed", "sfixed") for bits in (32, 64)]
_SCALARS = {
    name: getattr(_FIELD, f"TYPE_{name.upper()}")
    for name in ("double", "float", "bool", "string", "bytes", *_SIZED)
}
_LABELS = {
    "optional": _FIELD.LABEL_OPTIONAL,
    "required": _FIELD.LABEL_REQUIRED,
    "repeated": _FIELD.LABEL_REPEATED,
}
#: The end of the range that `max` means; ranges of messages end after their last number, those of enums with it.
_NUMBER_MAX, _ENUM_MAX = 536_870_911, 2**31 - 1
_NESTING_MAX = 100


def parse_proto(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a file; names of types are as they are written.

    :raises InvalidSchema: With the line, and what was expected.
    """
    return _FileParser(text, name).file()


class _FileParser(OptionParser):
    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self._file = pb.FileDescriptorProto(name=name)
        self._depth = 0

    def file(self) -> Any:
        """Parse the whole file."""
        if self.take_if("syntax"):
            self.take("=")
            syntax = self.string()
            if syntax not in ("proto2", "proto3"):
                self.refuse(f"the syntax is '{syntax}'; proto2 and proto3 are valid")
            if syntax == "proto3":
                self._file.syntax = syntax
            self.take(";")
        elif self.take_if("edition"):
            self.take("=")
            edition = f"EDITION_{self.string()}"
            if edition not in pb.Edition.keys():  # noqa: SIM118  # an enum of Protobuf
                self.refuse(f"{edition} is not known")
            self._file.syntax, self._file.edition = "editions", pb.Edition.Value(edition)
            self.take(";")
        while self.token.kind is not TokenKind.END:
            self._declaration()
        return self._file

    def _declaration(self) -> None:
        file = self._file
        match self.word():
            case "package":
                file.package = self.dotted_name()
                self.take(";")
            case "import":
                self._import()
            case "option":
                self.option(file.options)
                self.take(";")
            case "message":
                self._message(file.message_type.add())
            case "enum":
                self._enum(file.enum_type.add())
            case "service":
                self._service(file.service.add())
            case "extend":
                self._extend(file.extension, file.message_type)
            case other:
                self.refuse(f"'{other}' is not a declaration")
        while self.take_if(";"):
            pass

    def _import(self) -> None:
        kind = self.word() if self.token.kind is TokenKind.WORD else ""
        index = len(self._file.dependency)
        self._file.dependency.append(self.string())
        if kind == "public":
            self._file.public_dependency.append(index)
        elif kind == "weak":
            self._file.weak_dependency.append(index)
        self.take(";")

    def _message(self, message: Any, *, has_name: bool = True) -> None:
        self._depth += 1
        if self._depth > _NESTING_MAX:
            self.refuse("messages are nested too deeply")
        if has_name:
            message.name = self.word()
        self.take("{")
        while not self.take_if("}"):
            if not self.take_if(";"):
                self._member(message)
        _add_synthetic_oneofs(message)
        self._depth -= 1

    def _member(self, message: Any) -> None:
        if self._is_declaration("message", "enum", "oneof", "extend"):
            match self.word():
                case "message":
                    self._message(message.nested_type.add())
                case "enum":
                    self._enum(message.enum_type.add())
                case "oneof":
                    self._oneof(message)
                case _:
                    self._extend(message.extension, message.nested_type)
        elif self._is_declaration("option"):
            self.word()
            self.option(message.options)
            self.take(";")
        elif self.token.text in ("reserved", "extensions") and self.peek().text not in (".", "="):
            is_reserved = self.word() == "reserved"
            self._ranges(message, message.reserved_range if is_reserved else message.extension_range)
        else:
            self._field(message.field.add(), message.nested_type)

    def _is_declaration(self, *words: str) -> bool:
        """Whether a declaration begins here, and not a field whose type has such a name."""
        return (
            self.token.text in words
            and self.peek().kind in (TokenKind.WORD, TokenKind.SYMBOL)
            and (
                self.peek().text not in (".", "=")
                and (self.peek(2).text != "=" or self.token.text == "option")
            )
        )

    def _ranges(self, owner: Any, ranges: Any, largest: int = _NUMBER_MAX, behind: int = 1) -> None:
        """Parse numbers, ranges and names of `reserved` and `extensions`."""
        added = []
        while True:
            if self.token.kind is TokenKind.TEXT:
                owner.reserved_name.append(self.string())
            elif self.token.kind is TokenKind.WORD:  # as editions write names
                owner.reserved_name.append(self.word())
            else:
                found = ranges.add(start=self.integer())
                last = found.start
                if self.take_if("to"):
                    last = largest if self.take_if("max") else self.integer()
                if last > largest:
                    self.refuse(f"{last} is out of range")
                found.end = last + behind
                added.append(found)
            if not self.take_if(","):
                break
        if self.take_if("["):
            options = pb.ExtensionRangeOptions()
            self.option_list(options)
            for each in added:
                each.options.CopyFrom(options)
        self.take(";")

    def _oneof(self, message: Any) -> None:
        index = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=self.word())
        self.take("{")
        while not self.take_if("}"):
            if self.take_if(";"):
                continue
            if self._is_declaration("option"):
                self.word()
                self.option(oneof.options)
                self.take(";")
                continue
            field = message.field.add(oneof_index=index)
            self._field(field, message.nested_type, is_in_oneof=True)

    def _field(self, field: Any, nested: Any, *, is_in_oneof: bool = False) -> None:
        label = self.token.text if self.token.text in _LABELS and self.peek().text != "=" else ""
        if label:
            self.word()
        field.label = _LABELS.get(label, _FIELD.LABEL_OPTIONAL)
        if label == "optional" and self._file.syntax == "proto3":
            field.proto3_optional = True
        if not label and not is_in_oneof and not self._file.syntax and self.token.text != "map":
            self.refuse("a field of proto2 must be optional, required or repeated")
        if self.token.text == "map" and self.peek().text == "<":
            self._map(field, nested)
            return
        if self.token.text == "group" and self.peek(2).text == "=":
            self._group(field, nested)
            return
        self._type(field)
        field.name = self.word()
        self._number_and_options(field)
        self.take(";")

    def _number_and_options(self, field: Any) -> None:
        self.take("=")
        field.number = self.integer()
        if self.take_if("["):
            self.option_list(field.options, field)

    def _type(self, field: Any) -> None:
        name = self.dotted_name()
        if name in _SCALARS:
            field.type = _SCALARS[name]
        else:
            field.type_name = name

    def _map(self, field: Any, nested: Any) -> None:
        self.word()
        self.take("<")
        entry = pb.DescriptorProto()
        entry.options.map_entry = True
        for number, name in ((1, "key"), (2, "value")):
            part = entry.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
            self._type(part)
            self.take("," if number == 1 else ">")
        field.name = self.word()
        entry.name = f"{_pascal(field.name)}Entry"
        field.label, field.type_name = _FIELD.LABEL_REPEATED, entry.name
        nested.append(entry)
        self._number_and_options(field)
        self.take(";")

    def _group(self, field: Any, nested: Any) -> None:
        self.word()
        name = self.word()
        field.name, field.type, field.type_name = name.lower(), _FIELD.TYPE_GROUP, name
        self._number_and_options(field)
        self._message(nested.add(name=name), has_name=False)

    def _extend(self, extensions: Any, nested: Any) -> None:
        extendee = self.dotted_name()
        self.take("{")
        while not self.take_if("}"):
            if not self.take_if(";"):
                self._field(extensions.add(extendee=extendee), nested)

    def _enum(self, enum: Any) -> None:
        enum.name = self.word()
        self.take("{")
        while not self.take_if("}"):
            if self.take_if(";"):
                continue
            if self.token.text == "option" and self.peek().text != "=":
                self.word()
                self.option(enum.options)
            elif self.token.text == "reserved" and self.peek().text != "=":
                self.word()
                self._ranges(enum, enum.reserved_range, _ENUM_MAX, behind=0)
                continue
            else:
                value = enum.value.add(name=self.word())
                self.take("=")
                value.number = self.integer()
                if self.take_if("["):
                    self.option_list(value.options)
            self.take(";")

    def _service(self, service: Any) -> None:
        service.name = self.word()
        self.take("{")
        while not self.take_if("}"):
            if self.take_if(";"):
                continue
            if self.word() == "option":
                self.option(service.options)
                self.take(";")
            else:
                self._method(service.method.add())

    def _method(self, method: Any) -> None:
        method.name = self.word()
        method.input_type, method.client_streaming = self._stream_type()
        self.take("returns")
        method.output_type, method.server_streaming = self._stream_type()
        if not self.take_if("{"):
            self.take(";")
            return
        while not self.take_if("}"):
            if not self.take_if(";"):
                self.take("option")
                self.option(method.options)
                self.take(";")

    def _stream_type(self) -> tuple[str, bool]:
        self.take("(")
        is_stream = self.token.text == "stream" and self.peek().text != ")"
        if is_stream:
            self.word()
        name = self.dotted_name()
        self.take(")")
        return name, is_stream


def _add_synthetic_oneofs(message: Any) -> None:
    """Give each optional field of proto3 the oneof that represents its presence, behind all others."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _pascal(name: str) -> str:
    """Return the name of a map's entry, as protoc forms it."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))
