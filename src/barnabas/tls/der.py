"""Elements of DER (X.690), as far as certificates need them."""

from typing import NamedTuple


class Element(NamedTuple):
    tag: int
    contents: bytes
    der: bytes  #: the whole element


def elements(der: bytes) -> list[Element]:
    """Return the elements that follow each other in `der`.

    :raises ValueError: If it is malformed.
    """
    found, position = [], 0
    while position < len(der):
        start, length_bytes = position + 2, der[position + 1 : position + 2]
        length = int.from_bytes(length_bytes)
        if length & 0x80:
            end = start + (length & 0x7F)
            start, length = end, int.from_bytes(der[start:end])
        if not length_bytes or start + length > len(der):
            raise ValueError("malformed DER")
        found.append(Element(der[position], der[start : start + length], der[position : start + length]))
        position = start + length
    return found
