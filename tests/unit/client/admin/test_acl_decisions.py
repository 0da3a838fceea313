"""Combining the decisions that brokers have recorded."""

import pytest

from barnabas.client.admin.acl_decisions import combine_records, parse_acl_decisions_response
from barnabas.wire.acls import AclDecision, AclOperation, DecisionRecord, ResourceType
from barnabas.wire.barnabas_messages.describe_acl_decisions import (
    DescribeAclDecisionsResponse,
    RecordedAclDecision,
)
from barnabas.wire.errors import ErrorCode, KafkaError

OLD = AclDecision("User:alice", "h", AclOperation.READ, ResourceType.TOPIC, "t", True, 5)
NEW = OLD._replace(is_allowed=False, last_used_ms=9)
OTHER = OLD._replace(name=None)


def test_the_last_decision_of_all_brokers_counts() -> None:
    for records in ([OLD, OTHER], [NEW]), ([NEW], [OTHER, OLD]):
        combined = combine_records(DecisionRecord(1, decisions, 2) for decisions in records)
        assert set(combined.decisions) == {NEW, OTHER}
        assert combined.left_out_count == 4


def test_different_settings_become_the_strictest() -> None:
    a, b = frozenset({"User:a"}), frozenset({"User:a", "User:b"})
    combined = combine_records([DecisionRecord(1, (), 0, a, True), DecisionRecord(3, (), 0, b, False)])
    assert combined == DecisionRecord(3, [], 0, a, allows_if_no_acl=False)


def test_a_response_becomes_a_record() -> None:
    response = DescribeAclDecisionsResponse(
        since=3,
        left_out_count=4,
        super_users=["User:a"],
        allows_if_no_acl=True,
        decisions=[RecordedAclDecision("User:alice", "h", 3, 2, "t", is_allowed=True, last_used=5)],
    )
    expected = DecisionRecord(3, [OLD], 4, frozenset({"User:a"}), allows_if_no_acl=True)
    assert parse_acl_decisions_response(response) == expected


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(KafkaError) as caught:
        parse_acl_decisions_response(DescribeAclDecisionsResponse(error_code=31))
    assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
