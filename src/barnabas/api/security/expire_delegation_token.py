"""ExpireDelegationToken (40), v0-v2: let a token end earlier, or at once with a negative period (KIP-48).

Sessions that have begun with the token last until their authentication must be renewed.
Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED without a login, or after one with a token;
DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.delegation_tokens import (
    check_may_request,
    expires_ms_of,
    no_refusals,
    secret_key,
)
from barnabas.metadata.delegation_tokens import decide_expire, token_key
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def error_response(
    _request: ExpireDelegationTokenRequest, error: KafkaError
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=expires_ms_of(error))


@serves(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    0,
    2,
    error_response=error_response,
    audit=no_refusals,
    needs_latest_metadata=True,
)
async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    check_may_request(context)
    secret_key(context)
    key, principal = token_key(bytes(request.hmac)), context.connection.principal
    now_ms, period_ms = context.broker.clock.wall_ms(), request.expiry_time_period_ms
    expires_ms = await context.write(
        lambda image: decide_expire(image.delegation_tokens, key, principal, period_ms, now_ms)
    )
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
