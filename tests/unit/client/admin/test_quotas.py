"""Quotas: building requests and parsing responses."""

import pytest

from barnabas.client.admin import quotas
from barnabas.client.admin.quotas import ClientQuotaAlteration
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasResponse,
    ResponseEntityData,
    ResponseEntryData,
)
from barnabas.wire.messages.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

BOTH = (("client-id", None), ("user", "alice"))


def test_named_parts_match_exactly_and_unnamed_ones_the_default() -> None:
    request = quotas.describe_quotas_request(BOTH, strict=True)
    assert [(each.entity_type, each.match_type, each.match) for each in request.components] == [
        ("client-id", 1, None),
        ("user", 0, "alice"),
    ]
    assert request.strict


def test_quotas_are_returned_by_entity_whatever_the_order_of_its_parts() -> None:
    parts = [EntityData("user", "alice"), EntityData("client-id", None)]
    response = DescribeClientQuotasResponse(
        entries=[EntryData(parts, [ValueData("producer_byte_rate", 5.0)])]
    )
    assert quotas.parse_describe_quotas_response(response) == {BOTH: {"producer_byte_rate": 5.0}}


def test_a_rejected_filter_raises() -> None:
    with pytest.raises(KafkaError, match="why"):
        quotas.parse_describe_quotas_response(
            DescribeClientQuotasResponse(0, ErrorCode.INVALID_REQUEST, "why", None)
        )


def test_none_removes_a_quota() -> None:
    request = quotas.alter_quotas_request(
        [ClientQuotaAlteration(BOTH, {"a": 1.0, "b": None})], validate_only=True
    )
    [entry] = request.entries
    assert [(each.key, each.value, each.remove) for each in entry.ops] == [
        ("a", 1.0, False),
        ("b", 0.0, True),
    ]
    assert request.validate_only


def test_each_altered_entity_has_its_result() -> None:
    parts = [ResponseEntityData("user", "alice"), ResponseEntityData("client-id", None)]
    entries = [ResponseEntryData(ErrorCode.INVALID_REQUEST, "why", parts)]
    error = quotas.parse_alter_quotas_response(AlterClientQuotasResponse(entries=entries))[BOTH]
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, "why")
