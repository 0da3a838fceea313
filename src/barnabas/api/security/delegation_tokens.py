"""What the APIs of delegation tokens share."""

from barnabas.api.audit import Results
from barnabas.api.context import RequestContext
from barnabas.metadata.delegation_tokens import SECRET_KEY
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

USER_TYPE = "User"


def no_refusals(_request: Message, _response: Message) -> Results:
    """Return nothing: the audit has only the changes of a request, because no refusal is about a permission."""
    return ()


def expires_ms_of(error: KafkaError) -> int:
    """Return the time of expiry in a response with an error, as Apache Kafka has it."""
    return -1 if error.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED else 0


def check_may_request(context: RequestContext) -> None:
    """Check that the client has logged in, and with something else than a token, which may not create others.

    :raises KafkaError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    """
    connection = context.connection
    if not connection.is_identified:
        message = "delegation tokens are for clients that have logged in, or have a certificate"
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)
    if connection.authenticator is not None and connection.authenticator.is_delegation_token:
        message = "clients that have logged in with a delegation token may not request tokens"
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)


def secret_key(context: RequestContext) -> str:
    """Return the secret of all tokens.

    :raises KafkaError: DELEGATION_TOKEN_AUTH_DISABLED without one.
    """
    secret = context.broker.config.text_or_none(SECRET_KEY)
    if secret is None:
        message = f"delegation tokens are disabled: set {SECRET_KEY}"
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, message)
    return secret
