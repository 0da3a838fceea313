"""Compiles functions with numba and caches them on disk, so that each is compiled once per machine.

The broker does not import this module: numba takes most of a second and a hundred megabytes.
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

#: The fixed size of `copy_short`.
SHORT_BYTES = 32
#: Longer fields are copied by the C library.
_LONG_BYTES = 8 * SHORT_BYTES


def compiled(function: Function) -> Function:
    """Return the compiled function, from the user's cache if possible."""
    return _compile(function)


def compiled_inline(function: Function) -> Function:
    """Return a function that is inlined into compiled callers."""
    return _compile(function, forceinline=True)


def _compile(function: Function, *, forceinline: bool = False) -> Function:
    made: Any = numba.njit(nogil=True, forceinline=forceinline)(function)
    settings: Any = numba.config
    if cache_directory(settings.CACHE_DIR) is not None:
        made._cache = _Compiled(function)  # noqa: SLF001 (as `enable_caching` does, with numba's own)
    return cast("Function", made)


class _Locator:
    """Makes numba's cache depend on a module's source instead of its location.

    On a cluster's workers the module lies in an archive, in another directory for each application.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], _: str) -> "_Locator":
        """numba's factory method."""
        return cls(py_func)

    def ensure_cache_path(self) -> None:
        """`cache_directory` has created it."""

    def get_cache_path(self) -> str:
        """Return the same for all functions: cache files begin with the module's name."""
        settings: Any = numba.config
        directory = cache_directory(settings.CACHE_DIR)
        assert directory is not None
        return directory

    def get_source_stamp(self) -> str:
        """Return the key under which code is compiled again."""
        return _stamp(self._function.__module__)

    def get_disambiguator(self) -> str:
        """Distinguish functions of the same name, and states of the source.

        numba reads an index before it compares its stamp, and the index of another state may refer to classes that do
        not exist any more.
        """
        return f"{self._function.__code__.co_firstlineno}-{self.get_source_stamp()[:16]}"


_caching: Any = caching


class _Implementation(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Compiled(_caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation


@cache
def _stamp(name: str) -> str:
    """Return a hash of what the compiled functions of a module depend on.

    That is its source, the compiled functions that it imports, and its numbers and named tuples, imported or not: numba
    takes numbers for constants, and compiles the positions of fields.
    """
    names = vars(sys.modules[name])
    numbers = sorted((key, value) for key, value in names.items() if isinstance(value, int))
    fields = sorted((key, value._fields) for key, value in names.items() if hasattr(value, "_fields"))
    origins = {value.py_func.__module__ for value in names.values() if hasattr(value, "py_func")}
    stamps = [_stamp(origin) for origin in sorted(origins - {name})]
    source = inspect.getsource(sys.modules[name])
    return hashlib.sha256(f"{numbers}\n{fields}\n{stamps}\n{source}".encode()).hexdigest()


@cache
def cache_directory(chosen: str) -> str | None:
    """Return the directory of compiled functions: `chosen` (`NUMBA_CACHE_DIR`) or the user's cache; None for no cache.

    Each state of the sources in this package has a directory of its own. They may lie in a zip file.
    """
    sources = {file.name: file.read_bytes() for file in files(__package__).iterdir() if _is_source(file.name)}
    digest = hashlib.sha256(b"".join(sources[name] for name in sorted(sources)))
    try:
        directory = Path(chosen) if chosen else _user_cache() / "barnabas" / "numba"
        directory /= digest.hexdigest()[:16]
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except (RuntimeError, OSError):  # no home directory, or a read-only one
        return None
    return str(directory)


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_source(name: str) -> bool:
    return name in ("compiled.py", "walk.py", "key_table.py") or name.endswith("_numba.py")


# Bytes are read and written by address: an array that is passed between compiled functions is reference-counted, which
# takes ten times as long as using it.


def instructions(generator: Callable[..., Any]) -> Any:
    """Return a compiled function whose types and instructions `generator` provides."""
    return intrinsic(generator)


def _pointer(builder: Any, address: Any, value_type: Any) -> Any:
    return builder.inttoptr(address, value_type.as_pointer())


@instructions
def address_of(_: Any, array: Any) -> tuple[Signature, Callable[..., Any]]:
    """Return the address of an array's elements; the caller keeps the array alive."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), generate


@instructions
def pointer_to(_: Any, array: Any) -> tuple[Signature, Callable[..., Any]]:
    """Return an array's elements by index, unchecked; the caller keeps the array alive."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    pointer: Any = types.CPointer
    return pointer(array.dtype)(array), generate


@instructions
def load_byte(_: Any, address: Any) -> tuple[Signature, Callable[..., Any]]:
    """Return the byte at `address`, unchecked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        loaded = builder.load(_pointer(builder, arguments[0], ir.IntType(8)))
        return builder.zext(loaded, ir.IntType(64))

    return types.int64(types.int64), generate


@instructions
def store_byte(_: Any, address: Any, byte: Any) -> tuple[Signature, Callable[..., Any]]:
    """Write the lowest eight bits of `byte`, unchecked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        lowest = builder.trunc(arguments[1], ir.IntType(8))
        builder.store(lowest, _pointer(builder, arguments[0], ir.IntType(8)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@instructions
def copy(_: Any, target: Any, source: Any, size: Any) -> tuple[Signature, Callable[..., Any]]:
    """Copy bytes between addresses, unchecked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        to, origin = (_pointer(builder, address, ir.IntType(8)) for address in arguments[:2])
        write: Any = cgutils.raw_memcpy
        write(builder, to, origin, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@instructions
def copy_short(_: Any, target: Any, source: Any) -> tuple[Signature, Callable[..., Any]]:
    """Copy `SHORT_BYTES` in one step, unchecked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        piece = ir.VectorType(ir.IntType(8), SHORT_BYTES)
        to, origin = (_pointer(builder, address, piece) for address in arguments)
        builder.store(builder.load(origin, align=1), to, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@instructions
def load_word(_: Any, address: Any) -> tuple[Signature, Callable[..., Any]]:
    """Return the eight bytes at `address` in native byte order, unchecked."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        return builder.load(_pointer(builder, arguments[0], ir.IntType(64)), align=1)

    return types.int64(types.int64), generate


@cache
def has_crc_instruction() -> bool:
    """Whether the target processors have a CRC-32C instruction, as x86 has since SSE 4.2."""
    code_generation: Any = cpu_target.target_context.codegen()
    _, _, features = code_generation.magic_tuple()
    return "+crc32" in features.split(",")


@instructions
def add_word_to_crc(_: Any, crc: Any, word: Any) -> tuple[Signature, Callable[..., Any]]:
    """Return a CRC-32C with eight more bytes; requires `has_crc_instruction`."""
    return types.int64(types.int64, types.int64), partial(_add_to_crc, 64, 64)


@instructions
def add_byte_to_crc(_: Any, crc: Any, byte: Any) -> tuple[Signature, Callable[..., Any]]:
    """Return a CRC-32C with one more byte; requires `has_crc_instruction`."""
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
    """Copy a field; may write `SHORT_BYTES` behind the target, and may read up to `source_end`."""
    if size > _LONG_BYTES or source + size + SHORT_BYTES > source_end:
        copy(target, source, size)
    else:
        for at in range(0, size, SHORT_BYTES):
            copy_short(target + at, source + at)
