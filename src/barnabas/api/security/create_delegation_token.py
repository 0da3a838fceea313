"""CreateDelegationToken (38), v0-v3: create a token for the client, or for another user (KIP-48).

v3: an owner other than the client, who needs CREATE_TOKENS on that user (KIP-373).
Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED without a login, or after one with a token;
DELEGATION_TOKEN_AUTHORIZATION_FAILED, DELEGATION_TOKEN_AUTH_DISABLED, INVALID_PRINCIPAL_TYPE; POLICY_VIOLATION and
INVALID_REQUEST above the limits of `metadata/delegation_tokens.py`.
"""

from barnabas.api.audit import Results
from barnabas.api.authorization import require
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.security.delegation_tokens import (
    USER_TYPE,
    check_may_request,
    secret_key,
)
from barnabas.base.ids import random_id
from barnabas.base.resource_names import resource_name
from barnabas.metadata.delegation_tokens import (
    DelegationToken,
    Lifetimes,
    check_limits,
    decide_create,
    new_token,
    token_credentials,
    token_hmac,
    token_key,
)
from barnabas.wire.acls import AclOperation, ResourceType, split_principal
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


def error_response(request: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    """Return the error with the owner that the request names."""
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=request.owner_principal_type or "",
        principal_name=request.owner_principal_name or "",
    )


def audit(_request: CreateDelegationTokenRequest, response: CreateDelegationTokenResponse) -> Results:
    owner = f"{response.principal_type}:{response.principal_name}"
    return [(resource_name("user", owner), response.error_code, None)]


@serves(
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    0,
    3,
    error_response=error_response,
    audit=audit,
    needs_latest_metadata=True,
)
async def handle(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester = context.connection.principal
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type or ''}:{request.owner_principal_name}"
    kind, name = split_principal(owner)
    response = CreateDelegationTokenResponse(principal_type=kind, principal_name=name)
    response.token_requester_principal_type, response.token_requester_principal_name = split_principal(
        requester
    )
    try:
        token, hmac = await _create(context, request, owner)
    except KafkaError as error:
        response.error_code = error.code
        response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = -1
        return response
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.max_timestamp_ms = token.expires_max_ms
    response.token_id, response.hmac = token.token_id, hmac
    return response


async def _create(
    context: RequestContext, request: CreateDelegationTokenRequest, owner: str
) -> tuple[DelegationToken, bytes]:
    """Return the token and its HMAC."""
    check_may_request(context)
    requester, broker = context.connection.principal, context.broker
    if owner != requester:
        _check_type(owner)
        await require(context, AclOperation.CREATE_TOKENS, ResourceType.USER, owner)
    secret = secret_key(context)
    renewers, now_ms = _renewers(request), broker.clock.wall_ms()
    check_limits(broker.image.delegation_tokens, owner, renewers, now_ms)  # before the work
    token_id = random_id(broker.rng)
    hmac = token_hmac(secret, token_id)
    credentials = await broker.record_worker.call(token_credentials, hmac)
    max_ms = broker.config.integer("delegation.token.max.lifetime.ms")
    if request.max_lifetime_ms > 0:
        max_ms = min(max_ms, request.max_lifetime_ms)
    lifetimes = Lifetimes(max_ms, broker.config.integer("delegation.token.expiry.time.ms"))
    token = new_token(token_id, owner, requester, renewers, now_ms, lifetimes, credentials)
    key = token_key(hmac)
    await context.write(lambda image: decide_create(image.delegation_tokens, key, token))
    return token, hmac


def _renewers(request: CreateDelegationTokenRequest) -> tuple[str, ...]:
    renewers = dict.fromkeys(
        f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers
    )
    for renewer in renewers:
        _check_type(renewer)
    return tuple(renewers)


def _check_type(principal: str) -> None:
    """Check that a principal is a user: who logs in with a token is one."""
    kind, _ = split_principal(principal)
    if kind != USER_TYPE:
        message = f"'{principal}' cannot have or renew delegation tokens: its type must be {USER_TYPE}"
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, message)
