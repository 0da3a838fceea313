import pytest

from barnabas.base.throttle import WAIT_MS_MAX, Throttle


def test_use_must_be_waited_for() -> None:
    throttle = Throttle()
    assert throttle.wait_ms(1000, 0) == 0
    throttle.used(500, 1000, 0)
    assert throttle.wait_ms(1000, 0) == 500
    assert throttle.wait_ms(1000, 400) == 100
    assert throttle.wait_ms(1000, 500) == 0


def test_idle_time_is_not_accumulated() -> None:
    throttle = Throttle()
    throttle.used(1000, 1000, 60_000)
    assert throttle.wait_ms(1000, 60_000) == WAIT_MS_MAX
    assert throttle.wait_ms(1000, 60_999) == 1


def test_a_changed_rate_applies_to_earlier_use() -> None:
    throttle = Throttle()
    throttle.used(100_000, 1, 0)
    assert throttle.wait_ms(1, 0) == WAIT_MS_MAX
    assert throttle.wait_ms(1_000_000, 0) == 100
    assert throttle.wait_ms(1_000_000, 100) == 0


@pytest.mark.parametrize("used_bytes", [0, 1])
def test_a_rate_of_0_blocks_until_it_changes(used_bytes: int) -> None:
    throttle = Throttle()
    throttle.used(used_bytes, 0, 0)
    assert throttle.wait_ms(0, 10**9) == WAIT_MS_MAX
    assert throttle.wait_ms(10**9, 10**9 + 1) == 0


def test_without_a_limit_there_is_no_wait() -> None:
    throttle = Throttle()
    throttle.used(1 << 40, 2**63 - 1, 1)
    assert throttle.wait_ms(2**63 - 1, 2) == 0
