"""Selects the fastest available form of the kernels in `walk.py` and `key_table.py`.

Importing numba takes most of a second and a hundred megabytes.
"""

from functools import cache
from importlib.util import find_spec
from types import ModuleType

from barnabas.wire.records import key_table, walk


@cache
def find_kernels() -> ModuleType:
    """Return `walk` if it is machine code, else its functions compiled by numba, else plain Python without numba."""
    if walk.COMPILED or find_spec("numba") is None:
        return walk
    from barnabas.wire.records import walk_numba

    return walk_numba


@cache
def find_table_kernels() -> ModuleType | None:
    """Return `key_table` if it is machine code, else its functions compiled by numba; None without numba."""
    if key_table.COMPILED:
        return key_table
    if find_spec("numba") is None:
        return None
    from barnabas.wire.records import key_table_numba

    return key_table_numba
