"""SaslHandshake (17), v0-v1: choose the SASL mechanism (KIP-43).

v0: bare tokens follow.  v1: SaslAuthenticate follows (KIP-152).
Errors: UNSUPPORTED_SASL_MECHANISM, with the enabled mechanisms; ILLEGAL_SASL_STATE after the login, and on listeners
without authentication.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def error_response(request: SaslHandshakeRequest, error: KafkaError) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error.code)


@serves(SaslHandshakeRequest, SaslHandshakeResponse, 0, 1, error_response=error_response, authenticates=True)
async def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    authenticator = context.connection.authenticator
    if authenticator is None:
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
    code = authenticator.handshake(request.mechanism, context.api_version)
    if code is ErrorCode.ILLEGAL_SASL_STATE:
        raise KafkaError(code)
    return SaslHandshakeResponse(error_code=code, mechanisms=authenticator.offered)
