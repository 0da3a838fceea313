"""Random files of Protobuf with the messages A, A.C and B, and the enum E."""

from random import Random

from hypothesis import strategies as st

TYPES = st.sampled_from(
    (
        *(
            "int32",
            "int64",
            "uint32",
            "uint64",
            "sint32",
            "sint64",
            "bool",
            "string",
            "bytes",
            "float",
            "double",
        ),
        *("fixed32", "fixed64", "sfixed32", "sfixed64", "E", "A", "A.C", "B"),
    )
)
#: Small changes of a file; most keep it valid.
_CHANGES = (
    *(("int32", "int64"), ("sint32", "int32"), ("bool", "uint64"), ("string", "bytes"), ("float", "double")),
    *((" E ", " int32 "), (" B ", " A "), ("message B", "message D"), ("fixed64", "sfixed64")),
    *(("repeated ", ""), ("optional ", ""), ("required ", "optional "), (" = 1;", " = 6;")),
    *(("oneof x", "oneof y"), ("a1", "z1"), ("package p", "package q")),
)


@st.composite
def _field(draw: st.DrawFn, number: int, *, is_proto2: bool) -> str:
    kind, name = draw(TYPES), f"{draw(st.sampled_from('abc'))}{number}"
    labels = ["optional", "repeated", "map", "required" if is_proto2 else ""]
    match draw(st.sampled_from(labels)):
        case "map":
            key = draw(st.sampled_from(("string", "int32", "int64", "bool")))
            return f"map<{key}, {kind}> {name} = {number};"
        case label:
            return f"{label} {kind} {name} = {number};"


@st.composite
def _message(draw: st.DrawFn, name: str, *, is_proto2: bool) -> str:
    numbers = draw(st.lists(st.integers(1, 5), unique=True, max_size=4))
    in_oneof = numbers[: draw(st.integers(0, len(numbers)))] if draw(st.booleans()) else []
    parts = [draw(_field(number, is_proto2=is_proto2)) for number in numbers if number not in in_oneof]
    if in_oneof:
        members = " ".join(f"{draw(TYPES)} o{number} = {number};" for number in in_oneof)
        parts.append(f"oneof {draw(st.sampled_from('xy'))} {{ {members} }}")
    if name == "A":
        parts.append(f"message C {{ {draw(_field(1, is_proto2=is_proto2))} }}")
    return f"message {name} {{ {' '.join(draw(st.permutations(parts)))} }}"


@st.composite
def protobuf_files(draw: st.DrawFn) -> str:
    """Return the text of a file."""
    is_proto2 = draw(st.booleans())
    messages = [draw(_message(name, is_proto2=is_proto2)) for name in "AB"]
    enum = draw(st.sampled_from(("enum E { X = 0; }", "enum E { X = 0; Y = 1; }")))
    package = draw(st.sampled_from(("", "package p; ")))
    declared = " ".join(draw(st.permutations([*messages, enum])))
    return f'syntax = "proto{2 if is_proto2 else 3}"; {package}{declared}'


def slightly_changed(text: str, rng: Random) -> str:
    """Return a file with up to three small changes."""
    for old, new in rng.sample(_CHANGES, 3):
        text = text.replace(old, new, 1)
    return text
