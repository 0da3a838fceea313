import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from barnabas.wire.records import kernels
from support.kernels import BY_NUMBA, INTERPRETED, INTERPRETED_TABLE, TABLE_BY_NUMBA

both = pytest.mark.parametrize(
    ("name", "interpreted", "by_numba", "find", "without"),
    [
        ("walk", INTERPRETED, BY_NUMBA, kernels.find_kernels.__wrapped__, INTERPRETED),
        ("key_table", INTERPRETED_TABLE, TABLE_BY_NUMBA, kernels.find_table_kernels.__wrapped__, None),
    ],
)
Find = Callable[[], ModuleType | None]


@both
def test_machine_code_is_used_where_it_is_else_numba_if_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    interpreted: ModuleType,
    by_numba: ModuleType,
    find: Find,
    without: ModuleType | None,
) -> None:
    monkeypatch.setattr(kernels, name, interpreted)
    monkeypatch.setattr(f"barnabas.wire.records.{name}_numba", by_numba, raising=False)
    monkeypatch.setitem(sys.modules, f"barnabas.wire.records.{name}_numba", by_numba)
    assert find() is by_numba
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert find() is without
    monkeypatch.setattr(interpreted, "COMPILED", True)
    assert find() is interpreted
