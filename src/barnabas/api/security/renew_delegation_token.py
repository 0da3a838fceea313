"""RenewDelegationToken (39), v0-v2: let a token be valid for longer, within its maximum lifetime (KIP-48).

Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED without a login, or after one with a token;
DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.delegation_tokens import (
    check_may_request,
    expires_ms_of,
    no_refusals,
    secret_key,
)
from barnabas.metadata.delegation_tokens import decide_renew, token_key
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def error_response(_request: RenewDelegationTokenRequest, error: KafkaError) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=expires_ms_of(error))


@serves(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    0,
    2,
    error_response=error_response,
    audit=no_refusals,
    needs_latest_metadata=True,
)
async def handle(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    check_may_request(context)
    secret_key(context)
    key, principal = token_key(bytes(request.hmac)), context.connection.principal
    period_ms = context.broker.config.integer("delegation.token.expiry.time.ms")
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    now_ms = context.broker.clock.wall_ms()
    expires_ms = await context.write(
        lambda image: decide_renew(image.delegation_tokens, key, principal, period_ms, now_ms)
    )
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
