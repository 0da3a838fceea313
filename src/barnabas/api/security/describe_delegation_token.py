"""DescribeDelegationToken (41), v0-v3: the tokens that the client may see, with their HMACs (KIP-48, KIP-373).

These are its own, those that it has created or may renew, those of users for whom it has DESCRIBE_TOKENS, and those for
which it has DESCRIBE on the token.
Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED without a login, or after one with a token;
DELEGATION_TOKEN_AUTH_DISABLED.
"""

from barnabas.api.authorization import allowed
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.delegation_tokens import check_may_request, secret_key
from barnabas.metadata.delegation_tokens import DelegationToken, token_hmac, token_key
from barnabas.wire.acls import AclOperation, ResourceType, split_principal
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def error_response(
    _request: DescribeDelegationTokenRequest, error: KafkaError
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=error.code)


@serves(
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    0,
    3,
    error_response=error_response,
)
async def handle(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    check_may_request(context)
    secret = secret_key(context)
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    tokens = []
    async for key, token in context.each(context.broker.image.delegation_tokens.items()):
        if (owners is None or token.concerns(owners)) and await _may_see(context, token):
            hmac = token_hmac(secret, token.token_id)
            if key == token_key(hmac):  # else it was created with an earlier secret, and cannot be used
                tokens.append(_described(token, hmac))
    return DescribeDelegationTokenResponse(tokens=tokens)


async def _may_see(context: RequestContext, token: DelegationToken) -> bool:
    return (
        token.concerns({context.connection.principal})
        or await allowed(context, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or await allowed(context, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(token: DelegationToken, hmac: bytes) -> DescribedDelegationToken:
    owner_type, owner_name = split_principal(token.owner)
    requester_type, requester_name = split_principal(token.requester)
    renewers = [
        DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
        for kind, name in map(split_principal, token.renewers)
    ]
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.expires_max_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=renewers,
    )
