"""Describe- and AlterClientQuotas through a node."""

from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from support.loop import on_loop
from support.nodes import running_node
from support.quotas import quota_entry

EXACT, DEFAULT, ANY = 0, 1, 2


@pytest.mark.parametrize("version", [0, 1])
def test_set_quotas_are_described(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            entries = [quota_entry({"user": "alice", "client-id": None}, {"producer_byte_rate": 7.0})]
            answer = await node.ask(AlterClientQuotasRequest(entries), version)
            [result] = answer.entries
            assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
            assert [(each.entity_type, each.entity_name) for each in result.entity] == [
                ("client-id", None),
                ("user", "alice"),
            ]
            described = await node.ask(
                DescribeClientQuotasRequest([ComponentData("user", EXACT, "alice")]), version
            )
            [found] = described.entries
            assert [(each.key, each.value) for each in found.values] == [("producer_byte_rate", 7.0)]

    scenario()


def test_validate_only_sets_nothing(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = AlterClientQuotasRequest(
                [quota_entry({"user": "a"}, {"consumer_byte_rate": 7.0})], True
            )
            assert (await node.ask(request)).entries[0].error_code == ErrorCode.NONE
            assert (await node.ask(DescribeClientQuotasRequest())).entries == []

    scenario()


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([ComponentData("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", ANY, None), ComponentData("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("ip", ANY, None), ComponentData("user", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_filter_is_rejected(
    tmp_path: Path, components: list[ComponentData], code: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            answer = await node.ask(DescribeClientQuotasRequest(components))
            assert (answer.error_code, answer.entries) == (code, None)
            assert answer.error_message

    scenario()


def test_one_invalid_entity_does_not_fail_others(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            entries = [
                quota_entry({"user": "a"}, {"nonsense": 1.0}),
                quota_entry({"user": "b"}, {"producer_byte_rate": 1.0}),
            ]
            answer = await node.ask(AlterClientQuotasRequest(entries))
            assert [each.error_code for each in answer.entries] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
            assert "'nonsense'" in answer.entries[0].error_message

    scenario()
