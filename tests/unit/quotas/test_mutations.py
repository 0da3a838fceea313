import pytest

from barnabas.quotas.mutations import ControllerMutationQuota
from barnabas.quotas.rate import Windows
from barnabas.quotas.token_bucket import TokenBucket
from barnabas.wire.errors import ErrorCode, KafkaError

TOPICS = ["a", "b", "c"]


def bucket() -> TokenBucket:
    """Return a bucket of ten tokens, refilled with one per second."""
    return TokenBucket(Windows(10, 1000), 1.0, 0)


def test_the_change_that_empties_the_bucket_is_accepted_and_the_next_rejected() -> None:
    quota = ControllerMutationQuota(bucket(), 0, is_strict=True)
    admit = quota.admit(TOPICS)
    admit(15)
    with pytest.raises(KafkaError) as caught:
        admit(1)
    assert caught.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert "5000 ms" in caught.value.message
    assert quota.commit() == 5000


def test_an_accepted_change_is_not_throttled() -> None:
    quota = ControllerMutationQuota(bucket(), 0, is_strict=True)
    quota.admit(TOPICS)(15)
    assert quota.commit() == 0


def test_versions_without_the_error_are_only_throttled() -> None:
    quota = ControllerMutationQuota(bucket(), 0, is_strict=False)
    admit = quota.admit(TOPICS)
    admit(15)
    admit(5)
    assert quota.commit() == 10_000


def test_a_repeated_decision_counts_once() -> None:
    tokens = bucket()
    quota = ControllerMutationQuota(tokens, 0, is_strict=True)
    quota.admit(TOPICS)(6)
    quota.admit(TOPICS)(6)
    quota.commit()
    assert tokens.tokens(0) == 4


def test_a_decision_in_parts_counts_each_part_once() -> None:
    tokens = bucket()
    quota = ControllerMutationQuota(tokens, 0, is_strict=True)
    quota.admit(TOPICS)(6)  # was too much for one commit
    quota.admit(TOPICS[:1])(2)
    quota.admit(TOPICS[1:])(4)
    quota.admit(TOPICS[1:])(4)  # after a conflict
    quota.commit()
    assert tokens.tokens(0) == 4


def test_a_part_is_refused_after_others_have_emptied_the_bucket() -> None:
    quota = ControllerMutationQuota(bucket(), 0, is_strict=True)
    quota.admit(TOPICS[:1])(15)
    with pytest.raises(KafkaError, match="quota is exceeded"):
        quota.admit(TOPICS[1:])(1)
    assert quota.commit() > 0


def test_what_is_written_after_the_timeout_of_the_request_is_charged_too() -> None:
    tokens = bucket()
    quota = ControllerMutationQuota(tokens, 0, is_strict=True)
    quota.admit(TOPICS[:1])(2)
    quota.commit()
    quota.admit(TOPICS[1:])(3)
    assert tokens.tokens(0) == 5


def test_without_a_quota_nothing_is_counted() -> None:
    quota = ControllerMutationQuota(None, 0, is_strict=True)
    quota.admit(TOPICS)(10**9)
    assert quota.commit() == 0
