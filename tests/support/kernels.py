"""The kernels of `walk.py` in each form: machine code as installed, if it is, plain Python, and compiled by numba."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.wire import records
from barnabas.wire.records import compiled
from barnabas.wire.records import walk as installed


def load(module: str, name: str) -> ModuleType:
    """Another copy of a module of `wire/records`, of its source."""
    path = Path(records.__file__).with_name(f"{module}.py")
    loader = SourceFileLoader(name, str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    sys.modules[name] = copy = module_from_spec(spec)
    loader.exec_module(copy)
    return copy


def load_by_numba(plain: ModuleType) -> ModuleType:
    """The module that uses these kernels; it is not kept in numba's cache, where others would find this copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "walk", plain)
        patch.setattr(compiled, "cache_directory", lambda chosen: None)
        return load("walk_numba", "walk_interpreted_numba")


INSTALLED = installed
INTERPRETED = load("walk", "walk_interpreted")
BY_NUMBA = load_by_numba(INTERPRETED)
FORMS = {"installed": INSTALLED, "interpreted": INTERPRETED, "numba": BY_NUMBA}
every_form = pytest.mark.parametrize("kernels", FORMS.values(), ids=FORMS)
