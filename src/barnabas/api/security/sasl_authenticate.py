"""SaslAuthenticate (36), v0-v2: exchange tokens of the SASL mechanism (KIP-152).

v1: lifetime of the session (KIP-368).
Errors: SASL_AUTHENTICATION_FAILED; ILLEGAL_SASL_STATE after the login, and on listeners without authentication.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.policy.security_calls import NoPrincipal
from barnabas.security.sasl.authenticator import Authenticator
from barnabas.security.sasl.mechanism import LoginRefused
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def error_response(request: SaslAuthenticateRequest, error: KafkaError) -> SaslAuthenticateResponse:
    """Return the error at the top, without a token."""
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message or None)


@serves(
    SaslAuthenticateRequest, SaslAuthenticateResponse, 0, 2, error_response=error_response, authenticates=True
)
async def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    authenticator = context.connection.authenticator
    if authenticator is None:
        message = "SaslAuthenticate request received after successful authentication"
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, message)
    response, session_ms = authenticator.authenticate(bytes(request.auth_bytes))
    if authenticator.needs_principal:
        await _build_principal(context, authenticator)
    return SaslAuthenticateResponse(auth_bytes=response, session_lifetime_ms=session_ms)


async def _build_principal(context: RequestContext, authenticator: Authenticator) -> None:
    """Ask the principal builder before the response, so that a refused client gets an error.

    :raises KafkaError: SASL_AUTHENTICATION_FAILED.
    """
    builder = context.broker.policies.principal_builder(context.connection.listener)
    assert authenticator.user is not None
    authentication = context.connection.authentication(authenticator.user, authenticator.mechanism)
    try:
        if builder is None:
            raise NoPrincipal("the broker stops")
        authenticator.set_principal(await builder.build(authentication))
    except NoPrincipal as error:
        authenticator.refuse(str(error))
        message = "Authentication failed: the broker has no principal for this client."
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, message) from error
    except LoginRefused as error:
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
