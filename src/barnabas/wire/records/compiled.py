"""Functions that numba compiles, and where it keeps what it made: no process compiles what another one has.

Nothing of the broker imports this: numba takes most of a second, and a hundred megabytes.
"""

import hashlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import caching, cgutils, types
from numba.core.registry import cpu_target
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

#: What `copy_short` copies, always.
SHORT_BYTES = 32
#: Longer fields are for the C library to copy.
_LONG_BYTES = 8 * SHORT_BYTES


def compiled(function: Function) -> Function:
    """The function in machine code, from the user's cache when it has been there before."""
    return _compile(function)


def compiled_inline(function: Function) -> Function:
    """A function that becomes part of each compiled one that calls it."""
    return _compile(function, forceinline=True)


def _compile(function: Function, *, forceinline: bool = False) -> Function:
    made: Any = numba.njit(nogil=True, forceinline=forceinline)(function)
    settings: Any = numba.config
    if cache_directory(settings.CACHE_DIR) is not None:
        made._cache = _Compiled(function)  # noqa: SLF001 (as `enable_caching` does, with numba's own)
    return cast("Function", made)


class _Locator:
    """Tells numba to go by what a function's module says, and not by where the module lies.

    A cluster's workers have it in an archive, in another directory for each application.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], _: str) -> "_Locator":
        """What numba calls to make one."""
        return cls(py_func)

    def ensure_cache_path(self) -> None:
        """`cache_directory` has done it."""

    def get_cache_path(self) -> str:
        """The same for all functions: their names there begin with those of their modules."""
        settings: Any = numba.config
        directory = cache_directory(settings.CACHE_DIR)
        assert directory is not None
        return directory

    def get_source_stamp(self) -> str:
        """What is compiled anew when it changes."""
        return _stamp(self._function.__module__)

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self._function.__code__.co_firstlineno)


_caching: Any = caching


class _Implementation(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Compiled(_caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation


@cache
def _stamp(module: str) -> str:
    return hashlib.sha256(inspect.getsource(sys.modules[module]).encode()).hexdigest()


@cache
def cache_directory(chosen: str) -> str | None:
    """Where compiled functions lie: below `chosen` (`NUMBA_CACHE_DIR`), else in the user's cache; None for nowhere.

    numba looks only at the file of a function, not at those of the functions in it: so each state of these sources
    has a directory of its own. They may lie in a zip file.
    """
    sources = {file.name: file.read_bytes() for file in files(__package__).iterdir() if _is_source(file.name)}
    digest = hashlib.sha256(b"".join(sources[name] for name in sorted(sources)))
    try:
        directory = Path(chosen) if chosen else _user_cache() / "barnabas" / "numba"
        directory /= digest.hexdigest()[:16]
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except (RuntimeError, OSError):  # a user without a home, or none that may be written
        return None
    return str(directory)


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_source(name: str) -> bool:
    return name == "compiled.py" or name.endswith("_numba.py")


# Bytes are read and written by their addresses: an array that is handed from one compiled function to the next is
# counted as used and as not used any more, which takes ten times as long as what is then done with it.


def instructions(generator: Callable[..., Any]) -> Any:
    """A function of compiled ones, for which `generator` gives the types and writes the instructions."""
    return intrinsic(generator)


def _pointer(builder: Any, address: Any, value_type: Any) -> Any:
    return builder.inttoptr(address, value_type.as_pointer())


@instructions
def address_of(_: Any, array: Any) -> tuple[Signature, Callable[..., Any]]:
    """Where the elements of an array begin; the caller keeps the array."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


@instructions
def load_byte(_: Any, address: Any) -> tuple[Signature, Callable[..., Any]]:
    """The byte at `address`; nothing is checked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        loaded = builder.load(_pointer(builder, arguments[0], ir.IntType(8)))
        return builder.zext(loaded, ir.IntType(64))

    return types.int64(types.int64), generate


@instructions
def store_byte(_: Any, address: Any, byte: Any) -> tuple[Signature, Callable[..., Any]]:
    """Write the lowest eight bits of `byte`; nothing is checked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        lowest = builder.trunc(arguments[1], ir.IntType(8))
        builder.store(lowest, _pointer(builder, arguments[0], ir.IntType(8)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@instructions
def copy(_: Any, target: Any, source: Any, size: Any) -> tuple[Signature, Callable[..., Any]]:
    """Copy bytes from address to address; nothing is checked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        to, origin = (_pointer(builder, address, ir.IntType(8)) for address in arguments[:2])
        write: Any = cgutils.raw_memcpy
        write(builder, to, origin, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@instructions
def copy_short(_: Any, target: Any, source: Any) -> tuple[Signature, Callable[..., Any]]:
    """Copy `SHORT_BYTES` from address to address in one piece; nothing is checked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        piece = ir.VectorType(ir.IntType(8), SHORT_BYTES)
        to, origin = (_pointer(builder, address, piece) for address in arguments)
        builder.store(builder.load(origin, align=1), to, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@instructions
def load_word(_: Any, address: Any) -> tuple[Signature, Callable[..., Any]]:
    """The eight bytes at `address`, in the machine's order; nothing is checked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        return builder.load(_pointer(builder, arguments[0], ir.IntType(64)), align=1)

    return types.int64(types.int64), generate


@cache
def has_crc_instruction() -> bool:
    """Whether the processors that code is compiled for have an instruction for CRC-32C, as x86 has in SSE 4.2."""
    code_generation: Any = cpu_target.target_context.codegen()
    _, _, features = code_generation.magic_tuple()
    return "+crc32" in features.split(",")


@instructions
def add_word_to_crc(_: Any, crc: Any, word: Any) -> tuple[Signature, Callable[..., Any]]:
    """A CRC-32C that eight more bytes are added to; only where there `has_crc_instruction`."""
    return types.int64(types.int64, types.int64), partial(_add_to_crc, 64, 64)


@instructions
def add_byte_to_crc(_: Any, crc: Any, byte: Any) -> tuple[Signature, Callable[..., Any]]:
    """A CRC-32C that a byte is added to; only where there `has_crc_instruction`."""
    return types.int64(types.int64, types.int64), partial(_add_to_crc, 32, 8)


def _add_to_crc(
    crc_bits: int, added_bits: int, context: Any, builder: Any, signature: Signature, arguments: Any
) -> Any:
    crc_type, added_type = ir.IntType(crc_bits), ir.IntType(added_bits)
    kind = ir.FunctionType(crc_type, (crc_type, added_type))
    name = f"llvm.x86.sse42.crc32.{crc_bits}.{added_bits}"
    declare: Any = cgutils.get_or_insert_function
    instruction = declare(builder.module, kind, name)
    crc, added = arguments
    sum_ = builder.call(instruction, (builder.trunc(crc, crc_type), builder.trunc(added, added_type)))
    return builder.zext(sum_, ir.IntType(64))


@compiled_inline
def copy_field(target: int, source: int, size: int, source_end: int) -> None:
    """Copy a field; up to `SHORT_BYTES` behind the target are written too, and up to `source_end` may be read."""
    if size > _LONG_BYTES or source + size + SHORT_BYTES > source_end:
        copy(target, source, size)
    else:
        for at in range(0, size, SHORT_BYTES):
            copy_short(target + at, source + at)
