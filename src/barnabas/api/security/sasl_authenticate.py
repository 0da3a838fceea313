"""SaslAuthenticate (36), v0-v2: a token of the login and the one that answers it (KIP-152).

v1: for how long the login is good (KIP-368).
Errors: SASL_AUTHENTICATION_FAILED; ILLEGAL_SASL_STATE after the login and where nobody logs in.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def refuse(request: SaslAuthenticateRequest, error: KafkaError) -> SaslAuthenticateResponse:
    """The error at the top, without a token."""
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message or None)


@serves(SaslAuthenticateRequest, SaslAuthenticateResponse, 0, 2, refuse=refuse, authenticates=True)
async def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Pass the token to the mechanism."""
    authenticator = context.connection.authenticator
    if authenticator is None:
        message = "SaslAuthenticate request received after successful authentication"
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, message)
    answer, session_ms = authenticator.authenticate(bytes(request.auth_bytes))
    return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=session_ms)
