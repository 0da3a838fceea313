"""Fields of a message by path, like "topics.configs.name"."""

from collections.abc import Iterator
from typing import Any

from barnabas.wire.schema import Message, Struct


def paths_of(struct: type[Struct], version: int | None = None, prefix: str = "") -> Iterator[str]:
    """Return every field, or those of a version; structs before their fields."""
    for field in struct.FIELDS:
        if version is not None and version not in field.versions:
            continue
        yield prefix + field.name
        if field.struct:
            yield from paths_of(field.struct, version, f"{prefix}{field.name}.")


def values_of(message: Message, version: int) -> dict[str, list[Any]]:
    """Return path -> values in the order of the message; for an array of structs its length, None for null.

    Only the fields of the version are included.
    """
    found: dict[str, list[Any]] = {}
    _collect(message, version, "", found)
    return found


def _collect(struct: Struct, version: int, prefix: str, found: dict[str, list[Any]]) -> None:
    for field in struct.FIELDS:
        if version not in field.versions:
            continue
        value = getattr(struct, field.name)
        path = prefix + field.name
        values = found.setdefault(path, [])
        if not field.struct:
            values.append(value)
            continue
        values.append(None if value is None else len(value))
        for inner in value or []:
            _collect(inner, version, f"{path}.", found)


def entry(found: dict[str, list[Any]], key: str, name: str) -> dict[str, Any]:
    """Return field -> value of the first struct in an array whose field at the path `key` equals `name`."""
    at = found[key].index(name)
    prefix = key.rpartition(".")[0] + "."
    return {
        path.removeprefix(prefix): values[at]
        for path, values in found.items()
        if path.startswith(prefix) and "." not in path.removeprefix(prefix)
    }
