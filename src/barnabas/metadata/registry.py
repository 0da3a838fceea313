"""All record types, found in the modules of this package."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import barnabas.metadata
from barnabas.metadata.record_format import UnknownFormat
from barnabas.metadata.record_type import RecordType


def record_type(name: str) -> RecordType[Any]:
    """Return a record type.

    :raises UnknownFormat: If no record type has this name.
    """
    found = record_types().get(name)
    if found is None:
        raise UnknownFormat(f"records of type {name!r}")
    return found


@cache
def record_types() -> Mapping[str, RecordType[Any]]:
    """Return the record types by name."""
    types: dict[str, RecordType[Any]] = {}
    for info in pkgutil.walk_packages(barnabas.metadata.__path__, "barnabas.metadata."):
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, RecordType):
                assert types.setdefault(value.name, value) is value, (
                    f"two record types are named {value.name}"
                )
    return MappingProxyType(dict(sorted(types.items())))
