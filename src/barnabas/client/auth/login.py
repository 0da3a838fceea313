"""The login of a connection: SaslHandshake, then SaslAuthenticate until it is complete (KIP-152)."""

from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.client.auth.sasl import Exchange, NotTheBroker, SaslLogin
from barnabas.client.auth.tokens import NoToken
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import check
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.wire.schema import Message


async def log_in(send: Callable[[Message], Awaitable[Any]], address: BrokerAddress, login: SaslLogin) -> int:
    """Log in over a connection; return the lifetime of the session in ms, 0 for no limit (KIP-368).

    :raises KafkaError: UNSUPPORTED_SASL_MECHANISM, SASL_AUTHENTICATION_FAILED, or if the broker requires no login.
    """
    exchange = Exchange(login, token=await _token(login, address))
    handshake: SaslHandshakeResponse = await send(SaslHandshakeRequest(mechanism=login.mechanism))
    _check_handshake(handshake, address, login)
    token: bytes | None = exchange.first
    while token is not None:
        response: SaslAuthenticateResponse = await send(SaslAuthenticateRequest(auth_bytes=token))
        check(response.error_code, f"{address} refused {_client(login)}: {response.error_message}")
        try:
            token = exchange.answer(bytes(response.auth_bytes))
        except NotTheBroker as error:
            message = f"login to {address} by {login.mechanism} was stopped: {error}"
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, message) from error
    return response.session_lifetime_ms


def _client(login: SaslLogin) -> str:
    if login.is_delegation_token:
        return f"delegation token '{login.user}', which may have expired"
    return f"user '{login.user}'"


async def _token(login: SaslLogin, address: BrokerAddress) -> str:
    if login.token_source is None:
        return ""
    try:
        return await login.tokens.current(login.token_source)
    except NoToken as error:
        message = f"cannot log in to {address}: {error}"
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, message) from error


def _check_handshake(response: SaslHandshakeResponse, address: BrokerAddress, login: SaslLogin) -> None:
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        check(response.error_code, f"{address} is a listener without SASL")
    offered = ", ".join(response.mechanisms)
    check(response.error_code, f"{address} does not offer {login.mechanism}, but {offered}")
