"""Errors as pages show them: what failed, and what to do about it."""

from barnabas.client.core.errors import NotKafka
from barnabas.wire.errors import ErrorCode, KafkaError

_NOT_FOUND = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "It may have been deleted, or you may not be authorized to see it.",
    ErrorCode.GROUP_ID_NOT_FOUND: "It may have been deleted, or have expired.",
    ErrorCode.RESOURCE_NOT_FOUND: "It may have been deleted.",
}
_HINTS = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Ask for an ACL on the cluster, or log in as an authorized user.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Ask for an ACL on the topic, or log in as an authorized user.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Ask for an ACL on the group, or log in as an authorized user.",
    ErrorCode.SECURITY_DISABLED: "Start the brokers with authorizer.class.name to have ACLs.",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "Log out, and log in again: the password may have changed.",
    ErrorCode.UNSUPPORTED_VERSION: "This version of the cluster does not support the page.",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "Enable SCRAM-SHA-512 or PLAIN on the listener that the console uses.",
}
_FORBIDDEN = {code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED")}


class PageError(Exception):
    """An error page: HTTP status, headline, sentence, and what to do next."""

    def __init__(self, status: int, title: str, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.title = title
        self.text = text
        self.hint = hint


def not_found(text: str = "There is no page at this address.") -> PageError:
    """What was asked for does not exist."""
    return PageError(404, "Not found", text, "Use the menu.")


def wrong_form(text: str) -> PageError:
    """A malformed form."""
    return PageError(400, "The request is not valid", text, "Go back, correct it, and send it again.")


def problem_of(error: Exception) -> PageError | None:
    """The error page of an exception; None for an unexpected one."""
    if isinstance(error, PageError):
        return error
    if isinstance(error, KafkaError):
        return _refusal(error)
    if isinstance(error, NotKafka):
        return PageError(
            502, "Not a Kafka broker", str(error), "Check the address of the console's --bootstrap."
        )
    if isinstance(error, TimeoutError):
        hint = "Try again in a moment. If the problem persists, check the brokers' logs."
        return PageError(504, "The cluster did not respond", "It did not respond in time.", hint)
    if isinstance(error, ConnectionError):
        hint = "Check that the brokers are running and reachable from the console, then load this page again."
        return PageError(502, "The cluster cannot be reached", str(error), hint)
    if isinstance(error, ExceptionGroup):
        return problem_of(error.exceptions[0])
    return None


def sentence(error: KafkaError) -> str:
    """The broker's message with the name of its error code."""
    return f"{error.message} ({error.code.name})" if error.message else error.code.name


def _refusal(error: KafkaError) -> PageError:
    if error.code in _FORBIDDEN:
        return PageError(403, "You are not authorized", sentence(error), _HINTS.get(error.code, ""))
    if error.code in _NOT_FOUND:
        return PageError(404, "Not found", sentence(error), _NOT_FOUND[error.code])
    return PageError(409, "The cluster rejected the request", sentence(error), _HINTS.get(error.code, ""))
