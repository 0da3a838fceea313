"""Random message bodies, valid and damaged, for codecs that work in place."""

import random
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st

from barnabas.wire.codec import DecodeError, encode
from barnabas.wire.schema import Message, Versions
from support.random_structs import random_struct

DataT = TypeVar("DataT")


class Body(NamedTuple):
    """An encoded message."""

    version: int
    message: Message
    encoded: bytes


def bodies(message: type[Message], versions: Versions) -> st.SearchStrategy[Body]:
    """Generate messages with random contents at any of the versions."""

    def body(version: int, seed: int) -> Body:
        made = random_struct(message, version, random.Random(seed))
        return Body(version, made, bytes(encode(made, version)))

    return st.builds(body, st.integers(*versions), st.integers(0, 2**32))


@st.composite
def damaged_bodies(draw: st.DrawFn, message: type[Message], versions: Versions) -> tuple[int, bytes]:
    """Generate truncated or corrupted bodies with their versions."""
    version, _, encoded = draw(bodies(message, versions))
    at = draw(st.integers(0, len(encoded)))
    rest = encoded[at + draw(st.integers(0, 4)) :] if draw(st.booleans()) else b""
    return version, encoded[:at] + draw(st.binary(max_size=4)) + rest


def read_or_none(read: Callable[[], DataT]) -> DataT | None:
    """Return the result of `read`, or None for malformed bytes."""
    try:
        return read()
    except DecodeError:
        return None
