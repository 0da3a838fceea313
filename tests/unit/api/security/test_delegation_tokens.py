"""The APIs of delegation tokens through a node."""

import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.security import create_delegation_token
from barnabas.client.admin.acls import acl_creation
from barnabas.metadata import delegation_tokens
from barnabas.metadata.delegation_tokens import token_credentials
from barnabas.metadata.scram import Credentials
from barnabas.wire.acls import (
    ANONYMOUS_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.wire.schema import Message
from support.acls import ALICE, AUTHORIZED, ROOT
from support.delegation_tokens import secrets_of
from support.loop import on_loop
from support.nodes import RunningNode, running_node

ENABLED = {
    **AUTHORIZED,
    "delegation_token_secret_key": "secret",
    "delegation_token_max_lifetime_ms": "1000",
    "delegation_token_expiry_time_ms": "100",
}
REQUESTS = [
    CreateDelegationTokenRequest(),
    RenewDelegationTokenRequest(hmac=b"x"),
    ExpireDelegationTokenRequest(hmac=b"x"),
    DescribeDelegationTokenRequest(),
]


async def created(node: RunningNode, principal: str = ALICE, **fields: Any) -> CreateDelegationTokenResponse:
    node.connection.principal, node.connection.is_identified = principal, principal != ANONYMOUS_PRINCIPAL
    response: CreateDelegationTokenResponse = await node.ask(CreateDelegationTokenRequest(**fields))
    return response


async def seen(node: RunningNode, principal: str, owners: list[str] | None = None) -> list[str]:
    """Return the ids of the tokens that a principal sees."""
    node.connection.principal, node.connection.is_identified = principal, principal != ANONYMOUS_PRINCIPAL
    named = None if owners is None else [DescribeDelegationTokenOwner("User", name) for name in owners]
    response = await node.ask(DescribeDelegationTokenRequest(owners=named))
    assert response.error_code == ErrorCode.NONE
    return [token.token_id for token in response.tokens]


async def permit(
    node: RunningNode, principal: str, operation: AclOperation, kind: ResourceType, name: str
) -> None:
    acl = AclBinding(kind, name, PatternType.LITERAL, principal, "*", operation, AclPermission.ALLOW)
    node.connection.principal, node.connection.is_identified = ROOT, True
    [result] = (await node.ask(CreateAclsRequest([acl_creation(acl)]))).results
    assert result.error_code == ErrorCode.NONE


@on_loop
async def test_a_token_is_created_renewed_and_expired(tmp_path: Path) -> None:
    async with running_node(tmp_path, **ENABLED) as node:
        now_ms = node.clock.wall_ms()
        token = await created(node)
        assert (token.error_code, token.principal_type, token.principal_name) == (0, "User", "alice")
        assert (token.token_requester_principal_type, token.token_requester_principal_name) == (
            "User",
            "alice",
        )
        assert (token.issue_timestamp_ms, token.expiry_timestamp_ms) == (now_ms, now_ms + 100)
        assert token.max_timestamp_ms == now_ms + 1000
        node.clock.advance(50)
        renewed = await node.ask(RenewDelegationTokenRequest(hmac=token.hmac))
        assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, now_ms + 150)
        sooner = await node.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=10))
        assert (sooner.error_code, sooner.expiry_timestamp_ms) == (0, now_ms + 60)
        assert await seen(node, ALICE) == [token.token_id]
        ended = await node.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
        assert (ended.error_code, ended.expiry_timestamp_ms) == (0, now_ms + 50)
        assert await seen(node, ALICE) == []


@on_loop
async def test_a_request_shortens_lifetimes_but_does_not_extend_them(tmp_path: Path) -> None:
    async with running_node(tmp_path, **ENABLED) as node:
        now_ms = node.clock.wall_ms()
        short = await created(node, max_lifetime_ms=60)
        assert (short.max_timestamp_ms, short.expiry_timestamp_ms) == (now_ms + 60, now_ms + 60)
        for lifetime_ms in (0, -1, 5_000):
            token = await created(node, max_lifetime_ms=lifetime_ms)
            assert (token.max_timestamp_ms, token.expiry_timestamp_ms) == (now_ms + 1000, now_ms + 100)
        renewed = await node.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5_000))
        assert renewed.expiry_timestamp_ms == now_ms + 100


@on_loop
async def test_a_token_for_another_user_needs_create_tokens_on_that_user(tmp_path: Path) -> None:
    async with running_node(tmp_path, audited=True, **ENABLED) as node:
        bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
        refused = await created(node, **bob)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused.principal_name, refused.token_id, refused.hmac) == ("bob", "", b"")
        refusals = [refusal for record in node.broker.image.audit.values() for refusal in record.refusals]
        assert [(each.resource, each.error) for each in refusals] == [
            ("user/User:bob", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")
        ]
        await permit(node, ALICE, AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")
        token = await created(node, **bob)
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (
            *(0, "bob", "alice"),
        )
        assert await seen(node, "User:bob") == await seen(node, ALICE) == [token.token_id]


@on_loop
async def test_tokens_of_others_are_seen_with_a_permission_on_the_token_or_the_user(tmp_path: Path) -> None:
    async with running_node(tmp_path, **ENABLED) as node:
        renewers = [CreatableRenewers("User", "bob")]
        token = await created(node, renewers=renewers)
        other = await created(node, "User:carol")
        assert await seen(node, "User:bob") == [token.token_id]
        assert await seen(node, "User:bob", ["alice", "carol"]) == [token.token_id]
        assert await seen(node, "User:bob", ["carol"]) == await seen(node, "User:bob", []) == []
        await permit(node, "User:bob", AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, other.token_id)
        assert set(await seen(node, "User:bob")) == {token.token_id, other.token_id}
        assert await seen(node, "User:dave") == []
        await permit(node, "User:dave", AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol")
        assert await seen(node, "User:dave") == [other.token_id]


@on_loop
async def test_owners_and_renewers_must_be_users(tmp_path: Path) -> None:
    async with running_node(tmp_path, **ENABLED) as node:
        cases: list[dict[str, Any]] = [
            {"renewers": [CreatableRenewers("Group", "staff")]},
            {"owner_principal_type": "Group", "owner_principal_name": "staff"},
            {"owner_principal_type": None, "owner_principal_name": "bob"},
        ]
        for fields in cases:
            token = await created(node, **fields)
            assert (token.error_code, token.max_timestamp_ms) == (ErrorCode.INVALID_PRINCIPAL_TYPE, -1)
        assert await seen(node, ALICE) == []


@on_loop
async def test_keys_are_derived_in_a_thread_and_only_for_tokens_within_the_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def derive(hmac: bytes) -> Credentials:
        threads.append(threading.current_thread())
        return token_credentials(hmac)

    monkeypatch.setattr(create_delegation_token, "token_credentials", derive)
    monkeypatch.setattr(delegation_tokens, "TOKENS_PER_OWNER_MAX", 1)
    async with running_node(tmp_path, **ENABLED) as node:
        assert (await created(node)).error_code == ErrorCode.NONE
        assert (await created(node)).error_code == ErrorCode.POLICY_VIOLATION
        assert [thread is threading.main_thread() for thread in threads] == [False]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda value: type(value).__name__)
@on_loop
async def test_tokens_are_refused_without_a_secret_or_a_login(tmp_path: Path, request_: Message) -> None:
    async with running_node(tmp_path / "enabled", **ENABLED) as node:
        refused = await node.ask(request_)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert getattr(refused, "expiry_timestamp_ms", -1) == -1
    async with running_node(tmp_path / "disabled", **AUTHORIZED) as node:
        node.connection.principal, node.connection.is_identified = ALICE, True
        refused = await node.ask(request_)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


@on_loop
async def test_the_audit_shows_the_token_of_its_owner_without_its_hmac(tmp_path: Path) -> None:
    async with running_node(tmp_path, audited=True, **ENABLED) as node:
        token = await created(node, renewers=[CreatableRenewers("User", "bob")])
        [record] = node.broker.image.audit.values()
        [difference] = record.differences
        assert (difference.resource, difference.key) == (
            *("user/User:alice", f"delegation token {token.token_id}"),
        )
        assert (difference.before, difference.after) == (
            None,
            {
                "requester": "User:alice",
                "renewers": ["User:bob"],
                "expires_ms": token.expiry_timestamp_ms,
            },
        )


@on_loop
async def test_secrets_of_a_token_are_in_no_other_record(tmp_path: Path) -> None:
    async with running_node(tmp_path, audited=True, **ENABLED) as node:
        token = await created(node)
        [stored] = node.broker.image.delegation_tokens.values()
        node.clock.advance(10)
        await node.ask(RenewDelegationTokenRequest(hmac=token.hmac))
        await node.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
        records = "".join(item.value.decode() for item in node.store.items.values())
        assert records.count(token.token_id) == 3  # in the audit
        assert [secret for secret in secrets_of(token.hmac, stored) if secret in records] == []
