import dataclasses

import pytest

from barnabas.policy import CreateTopicPolicy
from support.policies import altered_topic, new_topic


def test_a_request_is_read_only_for_policies() -> None:
    request = new_topic("t", 3, 1, {"retention.ms": "1"})
    assert (request.topic, request.num_partitions, request.replication_factor) == ("t", 3, 1)
    assert request.replicas_assignments is None
    with pytest.raises(TypeError):
        request.configs["retention.ms"] = "2"  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.topic = "u"  # type: ignore[misc]


def test_manual_assignments_have_no_counts() -> None:
    request = CreateTopicPolicy.RequestMetadata("t", None, None, {0: [1, 2]}, {})
    assert request.replicas_assignments == {0: (1, 2)}


def test_a_key_reset_to_its_default_is_none() -> None:
    assert altered_topic("t", retention_ms=None).configs == {"retention.ms": None}
