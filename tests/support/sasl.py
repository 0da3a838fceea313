"""Brokers that require a login, and SASL exchanges message by message."""

from barnabas.client.auth.sasl import Exchange, SaslLogin
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.wire import Wire

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"

#: The first listener requires SASL; the second does not.
SASL_SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.clients.plain.sasl.jaas.config": (
        f'{MODULE} required user_alice="alice-secret" user_bob="bob-secret";'
    ),
}
ALICE = SaslLogin("PLAIN", "alice", "alice-secret")


def log_in(wire: Wire, login: SaslLogin = ALICE, version: int | None = None) -> SaslAuthenticateResponse:
    """Log in with SaslAuthenticate; return the last response, or the first one with an error."""
    assert wire.ask(SaslHandshakeRequest(mechanism=login.mechanism), 1).error_code == ErrorCode.NONE
    exchange = Exchange(login)
    token: bytes | None = exchange.first
    while token is not None:
        response: SaslAuthenticateResponse = wire.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        if response.error_code:
            return response
        token = exchange.answer(response.auth_bytes)
    return response
