"""The kernels in each form: as installed, machine code if there was a compiler; plain Python; compiled by numba."""

import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.wire import records
from barnabas.wire.records import compiled, key_table, walk


def _load(name: str, called: str) -> ModuleType:
    """Another copy of a module of `wire/records`, of its source."""
    path = Path(records.__file__).with_name(f"{name}.py")
    loader = SourceFileLoader(called, str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    sys.modules[called] = copy = module_from_spec(spec)
    loader.exec_module(copy)
    return copy


def _load_by_numba(name: str, plain: ModuleType) -> ModuleType:
    """The module that uses these kernels; it is not kept in numba's cache, where others would find this copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, name, plain)
        patch.setattr(compiled, "cache_directory", lambda chosen: None)
        return _load(f"{name}_numba", f"{name}_interpreted_numba")


INTERPRETED = _load("walk", "walk_interpreted")
BY_NUMBA = _load_by_numba("walk", INTERPRETED)
INTERPRETED_TABLE = _load("key_table", "key_table_interpreted")
TABLE_BY_NUMBA = _load_by_numba("key_table", INTERPRETED_TABLE)

#: Of `walk`.
FORMS: Mapping[str, ModuleType] = {"installed": walk, "interpreted": INTERPRETED, "numba": BY_NUMBA}
#: Of `key_table`.
TABLE_FORMS: Mapping[str, ModuleType] = {
    "installed": key_table,
    "interpreted": INTERPRETED_TABLE,
    "numba": TABLE_BY_NUMBA,
}
every_form = pytest.mark.parametrize("kernels", FORMS.values(), ids=FORMS)
