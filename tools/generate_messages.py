"""Write `barnabas.wire.messages` from the message definitions that Apache Kafka ships in its clients jar.

    python tools/generate_messages.py kafka-clients-4.3.1.jar kafka-clients-3.9.1.jar

The first jar is the newest; the others add the older versions that it has dropped.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

from barnabas.wire.schema import NO_VERSIONS, VERSION_MAX, Versions, versions

Json = dict[str, Any]

TARGET = Path(__file__).parents[1] / "src" / "barnabas" / "wire" / "messages"

#: Spoken among KRaft controllers and their brokers only: consensus belongs to the metadata store's engine.
NOT_SERVED = {4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73}

#: Spoken to controllers only in Apache Kafka; here any broker can act on the store's members.
UPDATE_RAFT_VOTER = 82

PYTHON_TYPES = {
    "bool": "bool", "int8": "int", "int16": "int", "uint16": "int", "int32": "int", "uint32": "int",
    "int64": "int", "float64": "float", "string": "str", "uuid": "bytes", "bytes": "bytes",
    "records": "Buffer",
}  # fmt: skip
SPECIFIERS = {"bool": "boolean", "bytes": "byte_string"}


def definitions(jar: Path) -> dict[tuple[int, str], Json]:
    """All requests and responses of a jar by (api key, "request" or "response")."""
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if not re.fullmatch(r"common/message/\w+\.json", name):
                continue
            text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
            message = json.loads(text)
            if message["type"] in ("request", "response") and message.get("apiKey") not in NOT_SERVED:
                found[message["apiKey"], message["type"]] = message
    return found


def merge(newest: Json, older: Json) -> Json:
    """`newest`, with the versions and fields that only `older` has."""
    if older["validVersions"] == "none":
        return newest
    span = [versions(d["validVersions"]) for d in (newest, older)]
    merged = dict(newest)
    merged["validVersions"] = f"{min(s.first for s in span)}-{max(s.last for s in span)}"
    dropped_last = span[0].first - 1
    merged["fields"] = merge_fields(newest["fields"], older["fields"], dropped_last)
    shared = {s["name"]: s for s in older.get("commonStructs", [])}
    merged["commonStructs"] = [
        {**s, "fields": merge_fields(s["fields"], shared[s["name"]]["fields"], dropped_last)}
        if s["name"] in shared
        else s
        for s in newest.get("commonStructs", [])
    ] + [s for name, s in shared.items() if name not in {n["name"] for n in newest.get("commonStructs", [])}]
    return merged


def merge_fields(newest: list[Json], older: list[Json], dropped_last: int) -> list[Json]:
    """The fields of both in wire order; one that both have keeps the newest form and the wider range.

    A field that only `older` has belongs to the dropped versions, up to `dropped_last`: in later ones it has
    gone or has another name.
    """
    result = [dict(field) for field in newest]
    position = 0
    for field in older:
        same = next((i for i, f in enumerate(result) if f["name"].lower() == field["name"].lower()), None)
        if same is None:
            span = versions(field["versions"])
            if span.first <= dropped_last:
                span = Versions(span.first, min(span.last, dropped_last))
                result.insert(position, {**field, "versions": spell(span)})
                position += 1
            continue
        position = same + 1
        mine = result[same]
        first = min(versions(mine["versions"]).first, versions(field["versions"]).first)
        mine["versions"] = spell(Versions(first, versions(mine["versions"]).last))
        if "fields" in mine and "fields" in field:
            mine["fields"] = merge_fields(mine["fields"], field["fields"], dropped_last)
    return result


def spell(span: Versions) -> str:
    if span.last == VERSION_MAX:
        return f"{span.first}+"
    return str(span.first) if span.first == span.last else f"{span.first}-{span.last}"


def clip(text: str, valid: Versions) -> Versions:
    span = versions(text)
    last = VERSION_MAX if span.last >= valid.last else span.last
    return Versions(max(span.first, valid.first), last) if span.first <= valid.last else NO_VERSIONS


def snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


class ModuleWriter:
    """Python source of one API's request and response."""

    def __init__(self) -> None:
        self.classes: list[str] = []
        self.names: set[str] = set()
        self.used: set[str] = {"Message"}
        self.prefix = ""
        self.structs: dict[str, str] = {}

    def message(self, definition: Json) -> None:
        """Add a request or a response and the structs within it."""
        self.prefix = "Request" if definition["type"] == "request" else "Response"
        self.structs = {}
        self.valid = versions(definition["validVersions"])
        self.common = {s["name"]: s for s in definition.get("commonStructs", [])}
        header = [
            f"    API_KEY = {definition['apiKey']}",
            f"    VERSIONS = Versions({self.valid.first}, {self.valid.last})",
            f'    FLEXIBLE = versions("{definition["flexibleVersions"]}")',
        ]
        self.used |= {"Versions", "versions"}
        self.struct(definition["name"], "Message", definition["fields"], header)

    def struct(self, name: str, base: str, fields: list[Json], header: list[str]) -> None:
        lines = [line for field in fields if (line := self.field(field))]
        doc = f'    """{name}."""' if base == "Struct" else f'    """{name} {spell(self.valid)}."""'
        self.classes.append(
            "\n".join([f"class {name}({base}):", doc, "", *header, *([""] if header else []), *lines])
        )
        self.used.add(base)

    def nested(self, kind: str, fields: list[Json]) -> str:
        """Name of the class for a struct type, written first if it is not there yet."""
        if kind not in self.structs:
            name = kind if kind not in self.names else self.prefix + kind
            assert name not in self.names, name
            self.names.add(name)
            self.structs[kind] = name
            self.struct(name, "Struct", fields or self.common[kind]["fields"], [])
        return self.structs[kind]

    def field(self, field: Json) -> str | None:
        """The line that declares one field; None where no served version has it."""
        span = clip(field["versions"], self.valid)
        if span.first > span.last:
            return None
        is_array = field["type"].startswith("[]")
        kind = field["type"].removeprefix("[]")
        is_struct = kind not in PYTHON_TYPES
        element = self.nested(kind, field.get("fields", [])) if is_struct else PYTHON_TYPES[kind]
        nullable = field.get("nullableVersions", "none")
        default = self.default(field, kind, is_array, is_struct)
        specifier = "array" if is_array else "nested" if is_struct else SPECIFIERS.get(kind, kind)
        arguments = [element if is_struct else f'"{kind}"'] if is_array or is_struct else []
        self.used |= {specifier, *({"ZERO_UUID"} if default == "ZERO_UUID" else ())}
        if span != Versions(0, VERSION_MAX):
            arguments.append(f'"{spell(span)}"')
        arguments.append(f"default={default}")
        if nullable != "none":
            arguments.append(f'nullable="{nullable}"')
        if "tag" in field:
            arguments.append(f"tag={field['tag']}")
            if field["taggedVersions"] != field["versions"]:
                arguments.append(f'tagged="{field["taggedVersions"]}"')
        annotation = f"list[{element}]" if is_array else element
        self.used |= {"Buffer"} if "Buffer" in annotation else set()
        optional = " | None" if nullable != "none" or default == "None" else ""
        return f"    {snake(field['name'])}: {annotation}{optional} = {specifier}({', '.join(arguments)})"

    @staticmethod
    def default(field: Json, kind: str, is_array: bool, is_struct: bool) -> str:
        given = field.get("default")
        if given == "null":
            return "None"
        if is_array or is_struct:
            return "..."
        if kind == "string":
            return json.dumps(given or "")
        if kind in ("bytes", "records"):
            return 'b""'
        if kind == "uuid":
            return "ZERO_UUID"
        if kind == "bool":
            return "True" if given in (True, "true") else "False"
        return str(float(given or 0)) if kind == "float64" else str(int(str(given or 0), 0))

    def source(self, title: str) -> str:
        imports = []
        if "Buffer" in self.used:
            imports.append("from barnabas.base.buffers import Buffer\n")
        if "ZERO_UUID" in self.used:
            imports.append("from barnabas.base.ids import ZERO_UUID\n")
        names = sorted(self.used - {"Buffer", "ZERO_UUID"}, key=lambda n: (not n[0].isupper(), n))
        imports.append(f"from barnabas.wire.schema import {', '.join(names)}\n")
        return f'"""{title}"""\n\n' + "".join(imports) + "\n\n" + "\n\n\n".join(self.classes) + "\n"


def main(jars: list[Path]) -> None:
    """Write every module and the index."""
    newest = definitions(jars[0])
    for jar in jars[1:]:
        older = definitions(jar)
        newest = {key: merge(d, older[key]) if key in older else d for key, d in newest.items()}
    rows = []
    for api_key in sorted({key for key, _ in newest}):
        request, response = newest[api_key, "request"], newest[api_key, "response"]
        if "broker" not in request.get("listeners", ["broker"]) and api_key != UPDATE_RAFT_VOTER:
            continue
        name = request["name"].removesuffix("Request")
        writer = ModuleWriter()
        writer.message(request)
        writer.message(response)
        title = f"{name} (api key {api_key}). Generated by tools/generate_messages.py; not edited by hand."
        (TARGET / f"{snake(name)}.py").write_text(writer.source(title))
        rows.append(f'    {api_key}: ("{snake(name)}", "{name}"),')
    (TARGET / "index.py").write_text(
        '"""Which module holds an API\'s messages. Generated by tools/generate_messages.py; not edited by hand."""\n\n'
        "#: api key -> (module, name of the API as Kafka spells it)\n"
        "APIS = {\n" + "\n".join(rows) + "\n}\n"
    )


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
