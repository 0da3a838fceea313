import pytest

from barnabas.quotas.rate import Windows
from barnabas.quotas.token_bucket import TokenBucket

WINDOWS = Windows(11, 1000)


def test_a_bucket_starts_full_and_refills_by_its_rate_up_to_its_size() -> None:
    bucket = TokenBucket(WINDOWS, 2.0, 0)
    assert bucket.tokens(0) == 22
    bucket.take(10, 0)
    assert bucket.tokens(1000) == 14
    assert bucket.tokens(60_000) == 22


def test_more_tokens_than_available_can_be_taken_and_are_waited_for() -> None:
    bucket = TokenBucket(WINDOWS, 2.0, 0)
    bucket.take(32, 0)
    assert bucket.wait_ms(0) == 5000
    assert bucket.wait_ms(4999) == 1
    assert bucket.wait_ms(5000) == 0


@pytest.mark.parametrize("limit", [5e-324, 1e-300, 1e-9])
def test_a_tiny_rate_has_a_finite_wait(limit: float) -> None:
    bucket = TokenBucket(WINDOWS, limit, 0)
    bucket.take(10**6, 0)
    assert 0 < bucket.wait_ms(0) <= 2**31 - 1


def test_a_new_rate_applies_from_then_on() -> None:
    bucket = TokenBucket(WINDOWS, 2.0, 0)
    bucket.take(32, 0)
    bucket.limit = 10.0
    assert bucket.wait_ms(0) == 1000
