"""Finds the fastest form of the kernels in `walk.py` that there is on this machine."""

from functools import cache
from importlib.util import find_spec
from types import ModuleType

from barnabas.wire.records import walk


@cache
def find_kernels() -> ModuleType:
    """`walk` if it is machine code, else its functions compiled by numba, else, without numba, plain Python.

    Importing numba takes most of a second and a hundred megabytes.
    """
    if walk.COMPILED or find_spec("numba") is None:
        return walk
    from barnabas.wire.records import walk_numba

    return walk_numba
