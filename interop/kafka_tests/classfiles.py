"""The name, the superclass and the strings of a compiled Java class."""

import struct
from dataclasses import dataclass

_ABSTRACT = 0x0400
_INTERFACE = 0x0200
_UTF8, _CLASS = 1, 7
#: Bytes after the tag of a constant pool entry (JVM specification, 4.4); a Utf8 has its own length.
_SIZES_BYTES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
_LONG, _DOUBLE = 5, 6


@dataclass(frozen=True, slots=True)
class ClassFile:
    """Names are in the form of Java source (``kafka.server.BaseRequestTest``), texts are the constant pool's."""

    name: str
    superclass: str
    abstract: bool  #: also True for an interface
    texts: frozenset[str]


def parse(content: bytes) -> ClassFile:
    """Parse a class file.

    :raises ValueError: the content is not a class file.
    """
    if content[:4] != b"\xca\xfe\xba\xbe":
        raise ValueError(
            f"a class file begins with CAFEBABE, not with {content[:4].hex().upper() or 'nothing'}"
        )
    texts, names, end = _constants(content)
    flags, this, parent = struct.unpack_from(">HHH", content, end)

    def name(index: int) -> str:
        return texts[names[index]].replace("/", ".") if index else ""

    abstract = bool(flags & (_ABSTRACT | _INTERFACE))
    return ClassFile(name(this), name(parent), abstract, frozenset(texts.values()))


def _constants(content: bytes) -> tuple[dict[int, str], dict[int, int], int]:
    """Return the texts by index, the text's index of each class by index, and the end of the constants."""
    (count,) = struct.unpack_from(">H", content, 8)
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    position, index = 10, 1
    while index < count:
        tag = content[position]
        position += 1
        if tag == _UTF8:
            (size_bytes,) = struct.unpack_from(">H", content, position)
            start = position + 2
            texts[index] = content[start : start + size_bytes].decode("utf-8", "replace")
            position = start + size_bytes
        else:
            if tag == _CLASS:
                (classes[index],) = struct.unpack_from(">H", content, position)
            position += _SIZES_BYTES[tag]
        index += 2 if tag in (_LONG, _DOUBLE) else 1
    return texts, classes, position
