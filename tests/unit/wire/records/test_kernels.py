import sys

import pytest

from barnabas.wire.records import kernels
from support.kernels import BY_NUMBA, INTERPRETED


def test_machine_code_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(INTERPRETED, "COMPILED", True)
    monkeypatch.setattr(kernels, "walk", INTERPRETED)
    assert kernels.find_kernels.__wrapped__() is INTERPRETED


def test_without_it_numba_compiles_the_same_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "walk", INTERPRETED)
    monkeypatch.setattr("barnabas.wire.records.walk_numba", BY_NUMBA, raising=False)
    monkeypatch.setitem(sys.modules, "barnabas.wire.records.walk_numba", BY_NUMBA)
    assert kernels.find_kernels.__wrapped__() is BY_NUMBA
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert kernels.find_kernels.__wrapped__() is INTERPRETED
