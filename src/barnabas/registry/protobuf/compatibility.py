"""Whether code of one schema of Protobuf can read what code of another wrote.

A field is its number; its name is of no importance. Nothing here can see that the number of a removed field is used
again, so authors reserve it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field

from barnabas.registry.schemas import Incompatibility

#: Types with the same encoding, of which one can be read as another.
_ENCODINGS = {
    kind: encoding
    for encoding, kinds in (
        ("varint", (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64)),
        ("varint", (Field.TYPE_BOOL, Field.TYPE_ENUM)),
        ("zigzag", (Field.TYPE_SINT32, Field.TYPE_SINT64)),
        ("text or bytes", (Field.TYPE_STRING, Field.TYPE_BYTES)),
        ("32 bits", (Field.TYPE_FIXED32, Field.TYPE_SFIXED32)),
        ("64 bits", (Field.TYPE_FIXED64, Field.TYPE_SFIXED64)),
        ("float", (Field.TYPE_FLOAT,)),
        ("double", (Field.TYPE_DOUBLE,)),
    )
    for kind in kinds
}


def decoding_problems(reader: Any, writer: Any) -> list[Incompatibility]:
    """Return what keeps the reader from reading some data of the writer, by their FileDescriptors."""
    comparison = _FileComparison()
    comparison.package(reader.package, writer.package)
    comparison.types(reader.message_types_by_name.values(), writer.message_types_by_name.values(), "#")
    return comparison.problems


class _FileComparison:
    def __init__(self) -> None:
        self.problems: list[Incompatibility] = []
        self._compared: set[tuple[str, str]] = set()

    def package(self, reader: str, writer: str) -> None:
        """Compare packages, which are a part of the names in google.protobuf.Any."""
        if reader != writer:
            self._add("PACKAGE_CHANGED", "#/", f"the package is '{reader}' for the reader, '{writer}' before")

    def types(self, readers: Iterable[Any], writers: Iterable[Any], path: str) -> None:
        """Compare messages that are declared at the same level."""
        by_name = {message.name: message for message in readers}
        for written in writers:
            if written.GetOptions().map_entry:
                continue
            inner = f"{path}/{written.name}"
            message = by_name.get(written.name)
            if message is None:
                self._add("MESSAGE_REMOVED", inner, f"the reader has no message '{written.name}'")
            else:
                self._message(message, written, inner)

    def _message(self, reader: Any, writer: Any, path: str) -> None:
        pair = (reader.full_name, writer.full_name)
        if pair in self._compared:
            return
        self._compared.add(pair)
        self.problems += _oneof_problems(reader, writer, path)
        fields, written = reader.fields_by_number, writer.fields_by_number
        for number in sorted({*fields, *written}):
            inner = f"{path}/{number}"
            if number in fields and number in written:
                self._field(fields[number], written[number], inner)
                if fields[number].is_required and not written[number].is_required:
                    self._add(
                        "REQUIRED_FIELD_ADDED", inner, f"only the reader requires '{fields[number].name}'"
                    )
            elif number in fields and fields[number].is_required:
                self._add("REQUIRED_FIELD_ADDED", inner, f"the reader requires '{fields[number].name}'")
            elif number in written and written[number].is_required:
                self._add("REQUIRED_FIELD_REMOVED", inner, f"the writer requires '{written[number].name}'")
        self.types(reader.nested_types, writer.nested_types, path)

    def _field(self, reader: Any, writer: Any, path: str) -> None:
        kinds = _kind(reader), _kind(writer)
        if kinds[0] != kinds[1]:
            self._add(
                "FIELD_KIND_CHANGED",
                path,
                f"'{reader.name}' is a {kinds[0]} for the reader, a {kinds[1]} before",
            )
        elif kinds[0] == "map":
            for name in ("key", "value"):
                parts = reader.message_type.fields_by_name, writer.message_type.fields_by_name
                self._field(parts[0][name], parts[1][name], f"{path}/{name}")
        elif kinds[0] == "message":
            self._message_type(reader, writer, path)
        else:
            self._scalar(reader, writer, path)

    def _message_type(self, reader: Any, writer: Any, path: str) -> None:
        names = _local_name(reader.message_type), _local_name(writer.message_type)
        if names[0] != names[1]:
            text = f"the type of '{reader.name}' is {names[0]} for the reader, {names[1]} for the writer"
            self._add("FIELD_NAMED_TYPE_CHANGED", path, text)
            return
        if (
            reader.message_type.file.name != reader.file.name
            or writer.message_type.file.name != writer.file.name
        ):
            self._message(reader.message_type, writer.message_type, path)

    def _scalar(self, reader: Any, writer: Any, path: str) -> None:
        encodings = _ENCODINGS[reader.type], _ENCODINGS[writer.type]
        if encodings[0] != encodings[1]:
            text = f"'{reader.name}' is encoded as {encodings[0]} for the reader, as {encodings[1]} by the writer"
            self._add("FIELD_SCALAR_KIND_CHANGED", path, text)
        elif encodings[0] != "text or bytes":
            self._label(reader, writer, path)

    def _label(self, reader: Any, writer: Any, path: str) -> None:
        """Compare labels as Confluent's registry does, which also refuses a number that is no longer required."""
        if reader.is_repeated != writer.is_repeated:
            text = f"'{reader.name}' is repeated in one of the schemas alone"
            self._add("FIELD_NUMERIC_LABEL_CHANGED", path, text)
        elif writer.is_required and not reader.is_required and reader.containing_oneof is None:
            text = f"'{reader.name}' is required by the writer alone"
            self._add("FIELD_NUMERIC_LABEL_CHANGED", path, text)

    def _add(self, error: str, path: str, text: str) -> None:
        self.problems.append(Incompatibility(error, path, text))


def _oneof_problems(reader: Any, writer: Any, path: str) -> Iterator[Incompatibility]:
    """Yield what fields lose that were set together, or could be in their oneof."""
    written = {oneof.name: {field.number for field in oneof.fields} for oneof in _oneofs(writer)}
    in_any = set[int]().union(*written.values())
    alone = set(writer.fields_by_number) - in_any
    for oneof in _oneofs(reader):
        numbers = {field.number for field in oneof.fields}
        inner = f"{path}/{oneof.name}"
        moved = numbers & alone
        if len(moved) > 1:
            text = "the writer may set several of these fields, of which the reader keeps one"
            yield Incompatibility("MULTIPLE_FIELDS_MOVED_TO_ONEOF", inner, text)
        elif moved and numbers & in_any:
            text = "the writer may set a field and this oneof, of which the reader keeps one"
            yield Incompatibility("FIELD_MOVED_TO_EXISTING_ONEOF", inner, text)
        lost = sorted(written.get(oneof.name, set()) - numbers)
        if lost:
            text = f"the reader's oneof lacks the fields {', '.join(map(str, lost))}"
            yield Incompatibility("ONEOF_FIELD_REMOVED", inner, text)


def _oneofs(message: Any) -> list[Any]:
    """Return the oneofs without those that stand for an optional field of proto3."""
    return [
        oneof
        for oneof in message.oneofs
        if not (len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}")
    ]


def _kind(field: Any) -> str:
    if field.message_type is None:
        return "scalar"
    return "map" if field.message_type.GetOptions().map_entry else "message"


def _local_name(message: Any) -> str:
    package = message.file.package
    return str(message.full_name.removeprefix(f"{package}.") if package else message.full_name)
