"""Random schemas of Avro."""

from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS = {"null": None, "boolean": True, "int": 1, "long": 2, "double": 1.5, "string": "x"}
SYMBOLS = st.lists(st.sampled_from("ABC"), min_size=1, unique=True)


@st.composite
def fields(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    kind = draw(inner)
    field = {"name": draw(st.sampled_from("abc")), "type": kind}
    if isinstance(kind, str) and kind in DEFAULTS and draw(st.booleans()):
        field["default"] = DEFAULTS[kind]
    return field


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas around `inner`; names occur twice in some, which are not valid."""
    enums = st.builds(lambda symbols: {"type": "enum", "name": "E", "symbols": symbols}, SYMBOLS)
    records = st.builds(
        lambda name, parts: {"type": "record", "name": name, "fields": parts},
        st.sampled_from(["R", "S", "x.R"]),
        st.lists(fields(inner), max_size=3, unique_by=lambda field: str(field["name"])),
    )
    arrays = st.builds(lambda items: {"type": "array", "items": items}, inner)
    maps = st.builds(lambda values: {"type": "map", "values": values}, inner)
    unions = st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=3, unique=True)
    return enums | records | arrays | maps | unions


SCHEMAS = st.recursive(st.sampled_from(PRIMITIVES), nested, max_leaves=4)
