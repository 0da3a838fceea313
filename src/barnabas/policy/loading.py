"""Creates an instance of `package.module:Class` at the start, and with the current code at a reload."""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

#: The methods of the base class of all user classes.
_BASE_METHODS = ("configure", "close")


class PolicyLoadError(Exception):
    """A user class cannot be loaded: the key that names it, the value, and the reason."""

    def __init__(self, key: str, value: str, reason: str) -> None:
        super().__init__(f"Invalid value '{value}' for {key}: {reason}")


def instantiate(key: str, class_name: str, method: str) -> Any:
    """Return a new instance of the class; imports its module if needed.

    Modules are searched on Python's path, then in the working directory.

    :param method: The name of the method that the broker will call.
    :raises PolicyLoadError: When the module or class does not exist, or the class needs arguments.
    """
    module_name, _, qualified_name = class_name.partition(":")
    _add_working_directory()
    try:
        with _no_bytecode():
            target: Any = importlib.import_module(module_name)
    except BaseException as error:  # a module may raise anything, SystemExit included
        reason = f"cannot import module {module_name}: {_format_error(error)}"
        if isinstance(error, ModuleNotFoundError):
            reason += f" (put its directory into PYTHONPATH; searched: {', '.join(filter(None, sys.path))})"
        raise PolicyLoadError(key, class_name, reason) from error
    for name in qualified_name.split("."):
        if not hasattr(target, name):
            reason = f"{target.__name__} has no {name}"
            raise PolicyLoadError(key, class_name, reason)
        target = getattr(target, name)
    if not isinstance(target, type):
        raise PolicyLoadError(key, class_name, "must name a class")
    try:
        policy = target()
    except BaseException as error:  # a class may raise anything, too
        reason = f"cannot be created without arguments: {_format_error(error)}"
        raise PolicyLoadError(key, class_name, reason) from error
    methods = (method, *_BASE_METHODS)
    missing = [name for name in methods if not callable(getattr(policy, name, None))]
    if missing:
        reason = f"must have methods {', '.join(methods)}, but lacks {', '.join(missing)}"
        raise PolicyLoadError(key, class_name, f"{reason}; the base classes are in barnabas.policy")
    return policy


@contextmanager
def fresh_modules(*class_names: str) -> Iterator[None]:
    """Within the block, import the classes' modules and other modules of their packages again.

    If the block fails, the previous modules are restored.
    """
    roots = {name.partition(":")[0].partition(".")[0] for name in class_names if name}
    roots -= {__name__.partition(".")[0], "__main__"}  # our own code and the running module stay
    before = _remove_modules(roots)
    importlib.invalidate_caches()
    try:
        yield
    except BaseException:
        _remove_modules(roots)
        sys.modules.update(before)
        raise


def _remove_modules(roots: set[str]) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] in roots]
    return {name: sys.modules.pop(name) for name in names}


def _add_working_directory() -> None:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Write no .pyc files: within one second they cannot tell an edited file from its former version."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
