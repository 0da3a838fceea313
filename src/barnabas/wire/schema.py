"""Declares Kafka messages: one class per message, with the fields of every version.

A message reads like a dataclass; each field declares the versions that have it:

    class CreatableTopic(Struct):
        name: str = string(default="")
        topic_id: bytes = uuid("7+", default=ZERO_UUID)

So handlers have one class for all versions of a request: a field that a version lacks has its default after
reading and is left out in writing. `barnabas.wire.codec` compiles the declarations.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast, dataclass_transform

#: The highest version in any range.
VERSION_MAX = 32_767


class Versions(NamedTuple):
    """An inclusive range of message versions; empty if `first > last`."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NO_VERSIONS = Versions(0, -1)


def versions(text: str) -> Versions:
    """Parse a range as in Kafka's message definitions: "3+", "0-4", "2" or "none"."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), VERSION_MAX)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


class Field(NamedTuple):
    """One field of a struct: its wire type and its versions."""

    kind: str  #: "int32", "string", "struct", ...; of an array, the kind of its elements
    versions: Versions
    default: Any
    nullable: Versions = NO_VERSIONS
    tag: int | None = None  #: number of the tagged field (KIP-482), in the versions of `tagged`
    tagged: Versions = NO_VERSIONS
    is_array: bool = False
    struct: "type[Struct] | None" = None  #: if `kind` is "struct"
    name: str = ""


class _Missing:
    """A default argument where None is a value."""

    def __repr__(self) -> str:
        return "<default>"


_MISSING = _Missing()


def _specifier(kind: str) -> Callable[..., Any]:
    def specify(
        since: str = "0+",
        *,
        default: Any,
        nullable: str = "none",
        tag: int | None = None,
        tagged: str | None = None,
    ) -> Any:
        tagged_range = NO_VERSIONS if tag is None else versions(tagged or since)
        return Field(kind, versions(since), default, versions(nullable), tag, tagged_range)

    specify.__name__ = kind
    return specify


boolean = _specifier("bool")
int8 = _specifier("int8")
int16 = _specifier("int16")
uint16 = _specifier("uint16")
int32 = _specifier("int32")
uint32 = _specifier("uint32")
int64 = _specifier("int64")
float64 = _specifier("float64")
string = _specifier("string")
uuid = _specifier("uuid")
byte_string = _specifier("bytes")
records = _specifier("records")


def nested(
    struct: "type[Struct]",
    since: str = "0+",
    *,
    default: Any,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    """Return a struct within a struct; its default is None or a new one."""
    field = cast(
        "Field", _specifier("struct")(since, default=default, nullable=nullable, tag=tag, tagged=tagged)
    )
    return field._replace(struct=struct)


def array(
    element: "str | type[Struct]",
    since: str = "0+",
    *,
    default: Any,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    """Return an array of a primitive kind or of structs; its default is None or a new empty list."""
    kind = element if isinstance(element, str) else "struct"
    field = cast("Field", _specifier(kind)(since, default=default, nullable=nullable, tag=tag, tagged=tagged))
    return field._replace(is_array=True, struct=None if isinstance(element, str) else element)


class _StructMeta(type):
    """Turns declared fields into slots, an initialiser and the tuple FIELDS."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "_StructMeta":
        fields = tuple(
            value._replace(name=key) for key, value in namespace.items() if isinstance(value, Field)
        )
        for field in fields:
            del namespace[field.name]
        namespace["__slots__"] = tuple(field.name for field in fields)
        namespace["FIELDS"] = fields
        if fields:
            namespace["__init__"] = _initialiser(fields)
        return super().__new__(mcs, name, bases, namespace)


def _initialiser(fields: tuple[Field, ...]) -> Callable[..., None]:
    """Return an `__init__` with one argument per field, in order; mutable defaults are created per object."""
    parameters, body, scope = [], [], {"MISSING": _MISSING}
    for field in fields:
        fresh = _fresh_default(field)
        scope[f"default_{field.name}"] = _MISSING if fresh else field.default
        parameters.append(f"{field.name}=default_{field.name}")
        if fresh:
            scope[f"fresh_{field.name}"] = fresh
            body.append(
                f"self.{field.name} = fresh_{field.name}() if {field.name} is MISSING else {field.name}"
            )
        else:
            body.append(f"self.{field.name} = {field.name}")
    source = f"def __init__(self, {', '.join(parameters)}):\n " + "\n ".join(body)
    exec(source, scope)  # the only way to generate a function with such a signature
    return cast("Callable[..., None]", scope["__init__"])


def _fresh_default(field: Field) -> Any:
    if field.default is None:
        return None
    if field.is_array:
        return list
    return field.struct


@dataclass_transform(
    field_specifiers=(
        boolean, int8, int16, uint16, int32, uint32, int64, float64,
        string, uuid, byte_string, records, nested, array,
    )
)  # fmt: skip
class Struct(metaclass=_StructMeta):
    """A message or a part of one. Compared and printed by its fields."""

    FIELDS: tuple[Field, ...]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # fields may be assigned to

    def __repr__(self) -> str:
        inner = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({inner})"


class Message(Struct):
    """A request, a response, or a record of an internal topic."""

    API_KEY = -1  #: -1 if it is not an API
    VERSIONS = NO_VERSIONS
    FLEXIBLE = NO_VERSIONS  #: versions with compact lengths and tagged fields (KIP-482)


def has_more_elements(message: Struct, elements_max: int) -> bool:
    """Whether the arrays of a message have more elements than that in all; stops counting at the limit."""
    return _left_elements(message, elements_max) < 0


def _left_elements(struct: Struct, left_count: int) -> int:
    for name, is_array, has_arrays in _arrays(type(struct)):
        value = getattr(struct, name)
        if not value:
            continue
        if is_array:
            left_count -= len(value)
        if has_arrays and left_count >= 0:
            for element in value if is_array else (value,):
                left_count = _left_elements(element, left_count)
                if left_count < 0:
                    break
        if left_count < 0:
            break
    return left_count


@cache
def _arrays(struct: type[Struct]) -> tuple[tuple[str, bool, bool], ...]:
    """Return (name, whether it is an array, whether its elements have arrays) of each field with arrays."""
    arrays = ((field, field.struct is not None and bool(_arrays(field.struct))) for field in struct.FIELDS)
    return tuple((field.name, field.is_array, nested) for field, nested in arrays if field.is_array or nested)
