"""Administration of delegation tokens (KIP-48)."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import check
from barnabas.config.jaas import quoted
from barnabas.wire.acls import split_principal
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token with its password, which its representation does not show. Principals are texts such as `User:alice`."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    expires_max_ms: int

    @property
    def password(self) -> str:
        return base64.b64encode(self.hmac).decode()

    @property
    def jaas(self) -> str:
        """The value of `sasl.jaas.config` with which clients log in by SCRAM."""
        options = f"username={quoted(self.token_id)} password={quoted(self.password)} tokenauth=true"
        return f"{_SCRAM_MODULE} required {options};"


#: Responses have no messages.
_REASONS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "delegation tokens are disabled: delegation.token.secret.key is not set on the brokers"
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "delegation tokens are for clients that have logged in, but not with a delegation token"
    ),
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "no delegation token has this HMAC",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only the owner of the token and its renewers may do this",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the delegation token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "owners and renewers must be users, such as User:alice",
}


class DelegationTokenAdmin:
    """Administers the delegation tokens of a cluster; stateless."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster

    async def create(
        self, owner: str | None = None, renewers: Sequence[str] = (), max_lifetime_ms: int = -1
    ) -> IssuedToken:
        """Create a token.

        :param owner: The principal for which it logs clients in; by default the client itself.
        :param max_lifetime_ms: With all renewals; -1 for the broker's limit.
        :raises KafkaError: If the broker refuses.
        """
        owner_type, owner_name = ("", "") if owner is None else split_principal(owner)
        request = CreateDelegationTokenRequest(
            owner_principal_type=owner_type,
            owner_principal_name=owner_name,
            renewers=[CreatableRenewers(*split_principal(renewer)) for renewer in renewers],
            max_lifetime_ms=max_lifetime_ms,
        )
        response: CreateDelegationTokenResponse = await self.cluster.send(request)
        if response.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED:
            check(response.error_code, f"CREATE_TOKENS on user '{owner}' is needed")
        _check(response.error_code)
        return IssuedToken(
            response.token_id,
            bytes(response.hmac),
            *_owner_and_requester(response),
            tuple(renewers),
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
        )

    async def renew(self, hmac: bytes, period_ms: int = -1) -> int:
        """Renew a token for a period, -1 for the broker's; return when it expires, in ms since the epoch.

        :raises KafkaError: If the broker refuses.
        """
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        response: RenewDelegationTokenResponse = await self.cluster.send(request)
        _check(response.error_code)
        return response.expiry_timestamp_ms

    async def expire(self, hmac: bytes, period_ms: int = -1) -> int:
        """Let a token expire after a period, or at once with -1; return when it expires, in ms since the epoch.

        :raises KafkaError: If the broker refuses.
        """
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        response: ExpireDelegationTokenResponse = await self.cluster.send(request)
        _check(response.error_code)
        return response.expiry_timestamp_ms

    async def describe(self, owners: Sequence[str] | None = None) -> list[IssuedToken]:
        """Describe the tokens of these principals, or all that the client may see.

        :raises KafkaError: If the broker refuses.
        """
        request = DescribeDelegationTokenRequest(owners=None)
        if owners is not None:
            request.owners = [DescribeDelegationTokenOwner(*split_principal(owner)) for owner in owners]
        response: DescribeDelegationTokenResponse = await self.cluster.send(request)
        _check(response.error_code)
        return [
            IssuedToken(
                token.token_id,
                bytes(token.hmac),
                *_owner_and_requester(token),
                tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers),
                token.issue_timestamp,
                token.expiry_timestamp,
                token.max_timestamp,
            )
            for token in response.tokens
        ]


def _check(code: int) -> None:
    check(code, _REASONS.get(ErrorCode.of(code)))


def _owner_and_requester(token: CreateDelegationTokenResponse | DescribedDelegationToken) -> tuple[str, str]:
    """Return the two principals, which are the same before version 3."""
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    return owner, owner if requester == ":" else requester
