"""The decisions by ACLs that brokers have recorded, which only Barnabas does."""

from collections.abc import Iterable

from barnabas.client.admin.admin import Admin
from barnabas.client.core.errors import check
from barnabas.wire.acls import AclDecision, AclOperation, DecisionRecord, ResourceType, from_code
from barnabas.wire.barnabas_messages.describe_acl_decisions import (
    DescribeAclDecisionsRequest,
    DescribeAclDecisionsResponse,
    RecordedAclDecision,
)


async def describe_acl_decisions(admin: Admin) -> DecisionRecord:
    """Return what ACLs have decided on any broker; see `combine_records`.

    :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED; UNSUPPORTED_VERSION from other brokers.
    """
    nodes = sorted(admin.cluster.metadata.nodes)
    responses = [await admin.send(DescribeAclDecisionsRequest(), node) for node in nodes]
    return combine_records(map(parse_acl_decisions_response, responses))


def parse_acl_decisions_response(response: DescribeAclDecisionsResponse) -> DecisionRecord:
    """Return the record of a broker.

    :raises KafkaError: If the request was refused.
    """
    check(response.error_code, response.error_message)
    return DecisionRecord(
        response.since,
        list(map(_decision, response.decisions)),
        response.left_out_count,
        frozenset(response.super_users),
        response.allows_if_no_acl,
    )


def _decision(decision: RecordedAclDecision) -> AclDecision:
    return AclDecision(
        decision.principal,
        decision.host,
        from_code(AclOperation, decision.operation),
        from_code(ResourceType, decision.resource_type),
        decision.resource_name,
        decision.is_allowed,
        decision.last_used,
    )


def combine_records(records: Iterable[DecisionRecord]) -> DecisionRecord:
    """Combine the records of all brokers: the last decision on each question, and since when all have recorded.

    If brokers have different settings, the result is stricter than each of them.
    """
    records = list(records)
    return DecisionRecord(
        max(record.since_ms for record in records),
        last_decisions(decision for record in records for decision in record.decisions),
        sum(record.left_out_count for record in records),
        frozenset.intersection(*(record.super_users for record in records)),
        all(record.allows_if_no_acl for record in records),
    )


def last_decisions(decisions: Iterable[AclDecision]) -> list[AclDecision]:
    """Return the decision on each question that was used last."""
    last: dict[tuple[object, ...], AclDecision] = {}
    for decision in decisions:
        known = last.setdefault(decision[:5], decision)
        if decision.last_used_ms > known.last_used_ms:
            last[decision[:5]] = decision
    return list(last.values())
