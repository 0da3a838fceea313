import gc

import pytest

from barnabas.base.collector import paused_collector


def test_nothing_is_collected_while_the_collector_is_paused() -> None:
    with paused_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_goes_on_after_an_error() -> None:
    with pytest.raises(ValueError, match="x"), paused_collector():
        raise ValueError("x")
    assert gc.isenabled()
