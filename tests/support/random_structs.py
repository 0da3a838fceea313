"""Messages with random contents, for round trips."""

import random
from typing import Any, TypeVar, cast

from barnabas.wire.schema import Field, Struct

RANGES = {
    "int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1), "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1),
}  # fmt: skip

StructT = TypeVar("StructT", bound=Struct)


def random_struct(struct: type[StructT], version: int, rng: random.Random) -> StructT:
    """Return a message with every field of the version; nullable fields are often null."""
    made = struct()
    for field in struct.FIELDS:
        if version not in field.versions:
            continue
        if version in field.nullable and rng.random() < 0.3:
            value = None
        elif field.is_array:
            value = [_random_value(field, version, rng) for _ in range(rng.choice([0, 1, 3]))]
        else:
            value = _random_value(field, version, rng)
        setattr(made, field.name, value)
    return made


def _random_value(field: Field, version: int, rng: random.Random) -> Any:
    if "error_code" in field.name:
        return rng.randrange(0, 100)
    if field.kind == "struct":
        return random_struct(cast("type[Struct]", field.struct), version, rng)
    if field.name.endswith(("_ms", "timestamp")) or field.name in ("start_time", "retention_time"):
        return rng.randrange(0, 2**31 - 1)
    if field.kind in RANGES:
        return rng.choice([*RANGES[field.kind], rng.randint(*RANGES[field.kind]), 0])
    if field.kind == "bool":
        return rng.random() < 0.5
    if field.kind == "float64":
        return rng.uniform(-1e9, 1e9)
    if field.kind == "uuid":
        return rng.randbytes(16)
    if field.kind == "string":
        return "".join(rng.choices("aZ.é→🙂 -_", k=rng.choice([0, 1, 30, 200])))
    return rng.randbytes(rng.choice([0, 1, 300]))
