"""SaslHandshake (17), v0-v1: the mechanism by which a client will log in (KIP-43).

v0: bare tokens follow.  v1: SaslAuthenticate follows (KIP-152).
Errors: UNSUPPORTED_SASL_MECHANISM, with the mechanisms that there are; ILLEGAL_SASL_STATE after the login and where
nobody logs in.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def refuse(request: SaslHandshakeRequest, error: KafkaError) -> SaslHandshakeResponse:
    """The error at the top."""
    return SaslHandshakeResponse(error_code=error.code)


@serves(SaslHandshakeRequest, SaslHandshakeResponse, 0, 1, refuse=refuse, authenticates=True)
async def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Begin an exchange by that mechanism."""
    authenticator = context.connection.authenticator
    if authenticator is None:
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
    code = authenticator.handshake(request.mechanism, context.api_version)
    if code is ErrorCode.ILLEGAL_SASL_STATE:
        raise KafkaError(code)
    return SaslHandshakeResponse(error_code=code, mechanisms=authenticator.offered)
