"""Exit codes, and error messages with hints."""

import functools
import json
import os
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, ParamSpec

import typer

from barnabas.cli.support.login import COMMAND_CONFIG, command_config, with_command_config, without_values

OK = 0
FAILED = 1  #: any other failure
WRONG_USE = 2  #: invalid arguments
NOT_FOUND = 3  #: a named resource does not exist
REFUSED = 4  #: by an ACL, a policy, or authentication
UNREACHABLE = 5  #: no broker responded, or not in time
INTERRUPTED = 130  #: as of shells for a command that Ctrl-C ends

Arguments = ParamSpec("Arguments")

_HINTS = {
    "UNKNOWN_TOPIC_OR_PARTITION": "'barnabas topics list' shows the topics, 'barnabas topics create' creates one",
    "TOPIC_ALREADY_EXISTS": "'--if-not-exists' ignores existing topics; 'barnabas topics describe' shows the topic",
    "OFFSET_OUT_OF_RANGE": "choose an offset in that range, or '--from-beginning'",
    "MESSAGE_TOO_LARGE": "send smaller records, or increase max.message.bytes of the topic",
    "INVALID_REPLICATION_FACTOR": "'barnabas metadata' shows how many brokers there are",
    "INVALID_PARTITIONS": "specify a total above the current number: partitions can only be added",
    "NOT_ENOUGH_REPLICAS": "restart the brokers of the missing replicas, or lower min.insync.replicas of the topic",
    "REQUEST_TIMED_OUT": "the broker may still be processing the request; check before retrying",
    "POLICY_VIOLATION": "comply with the policy, or ask the operator of the cluster to change it",
    "TOPIC_DELETION_DISABLED": "set delete.topic.enable=true on the brokers",
    "BROKER_NOT_AVAILABLE": "'barnabas brokers list' shows the brokers",
    "BROKER_ID_NOT_REGISTERED": "'barnabas brokers list --fenced' shows the brokers",
    "VOTER_NOT_FOUND": "'barnabas quorum describe' shows the voters",
    "LOG_DIR_NOT_FOUND": "'barnabas log-dirs describe' shows the log directories",
    "RESOURCE_NOT_FOUND": "'barnabas users list' shows the users",
    "UNSUPPORTED_VERSION": "'barnabas brokers api-versions' shows the APIs that the broker supports",
    "INVALID_CONFIG": "'barnabas configs get --all' shows all keys and their values",
    "TOPIC_AUTHORIZATION_FAILED": "ask for the ACL ('barnabas acls add'), or log in as a user who has it",
    "GROUP_AUTHORIZATION_FAILED": "ask for the ACL ('barnabas acls add'), or log in as a user who has it",
    "GROUP_ID_NOT_FOUND": "'barnabas groups list' shows the groups",
    "DELEGATION_TOKEN_NOT_FOUND": "'barnabas tokens list' shows the tokens",
    "TRANSACTIONAL_ID_NOT_FOUND": "'barnabas transactions list' shows the transactional ids",
    "NON_EMPTY_GROUP": "stop the members of the group first; 'barnabas groups describe' shows them",
    "UNKNOWN_MEMBER_ID": "'barnabas groups describe' shows the members of the group",
    "GROUP_SUBSCRIBED_TO_TOPIC": "unsubscribe the members from the topic first; 'barnabas groups describe' shows them",
    "CLUSTER_AUTHORIZATION_FAILED": "ask for the ACL ('barnabas acls add --cluster'), or log in as a user who has it",
    "SECURITY_DISABLED": "set authorizer.class.name and restart the brokers",
    "SASL_AUTHENTICATION_FAILED": "check the user name and password in the --command-config file",
    "ILLEGAL_SASL_STATE": "omit --command-config, or use the port of a listener with SASL",
    "UNSUPPORTED_SASL_MECHANISM": "set another sasl.mechanism in the --command-config file",
}
_HINT_UNREACHABLE = "start a broker with 'barnabas serve', or specify another one with --bootstrap HOST:PORT"
_HINT_LOST = "if the listener requires TLS or a login, specify them with --command-config FILE"
_HINT_TLS = "check ssl.truststore.location and ssl.keystore.location in the --command-config file"
_HINT_NOT_KAFKA = "check that the port belongs to a Kafka listener without TLS"
_HINT_REGISTRY = (
    "start a schema registry with 'barnabas registry', or specify another one with --registry URL"
)
_HINT_TIMED_OUT = "the broker may have processed the request; check before retrying"

#: Exit codes by the names of Kafka's errors; other errors exit with FAILED.
_EXIT_CODES = {
    "UNKNOWN_TOPIC_OR_PARTITION": NOT_FOUND,
    "UNKNOWN_TOPIC_ID": NOT_FOUND,
    "RESOURCE_NOT_FOUND": NOT_FOUND,
    "GROUP_ID_NOT_FOUND": NOT_FOUND,
    "TRANSACTIONAL_ID_NOT_FOUND": NOT_FOUND,
    "DELEGATION_TOKEN_NOT_FOUND": NOT_FOUND,
    "BROKER_NOT_AVAILABLE": NOT_FOUND,
    "BROKER_ID_NOT_REGISTERED": NOT_FOUND,
    "UNKNOWN_MEMBER_ID": NOT_FOUND,
    "VOTER_NOT_FOUND": NOT_FOUND,
    "LOG_DIR_NOT_FOUND": NOT_FOUND,
    "TOPIC_AUTHORIZATION_FAILED": REFUSED,
    "GROUP_AUTHORIZATION_FAILED": REFUSED,
    "CLUSTER_AUTHORIZATION_FAILED": REFUSED,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": REFUSED,
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": REFUSED,
    "DELEGATION_TOKEN_OWNER_MISMATCH": REFUSED,
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": REFUSED,
    "DELEGATION_TOKEN_AUTH_DISABLED": REFUSED,
    "SASL_AUTHENTICATION_FAILED": REFUSED,
    "POLICY_VIOLATION": REFUSED,
    "TOPIC_DELETION_DISABLED": REFUSED,
}
#: Kinds and hints of connection errors, by the names of the client's classes, which are not imported for speed.
_CONNECTIONS = {
    "ConnectionLost": ("CONNECTION_LOST", _HINT_LOST),
    "NotKafka": ("NOT_KAFKA", _HINT_NOT_KAFKA),
    "RegistryUnavailable": ("REGISTRY_UNAVAILABLE", _HINT_REGISTRY),
    "RequestTimedOut": ("TIMED_OUT", _HINT_TIMED_OUT),
}
_KINDS = {
    FAILED: "FAILED",
    WRONG_USE: "WRONG_USE",
    NOT_FOUND: "NOT_FOUND",
    REFUSED: "REFUSED",
    UNREACHABLE: "UNREACHABLE",
}


class CommandError(Exception):
    """A failure of a command.

    In JSON, `kind` is the name of the error (default: the name of the exit code), and `details` are further fields.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        exit_code: int = FAILED,
        kind: str = "",
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.details = details or {}
        self.hint = hint
        self.exit_code = exit_code
        self.kind = kind or _KINDS.get(exit_code, "FAILED")


def wrong_use(message: str, hint: str = "") -> CommandError:
    """Return an error for invalid arguments."""
    return CommandError(message, hint=hint, exit_code=WRONG_USE)


def handle_errors(command: Callable[Arguments, None], needs: Sequence[str] = ()) -> Callable[Arguments, None]:
    """Wrap a command to print its errors, as text or with `as_json` as JSON, and to set the exit code.

    :param needs: The permissions that the command needs, as "operation kind".
    """

    def attempt(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _discard_stdout()
            raise typer.Exit(OK) from None
        except struct.error:
            too_large = wrong_use("a number is too large for its field in the Kafka protocol")
            raise typer.Exit(report(too_large, as_json=bool(kwargs.get("as_json")))) from None
        except (CommandError, ValueError, OSError) as error:
            raise typer.Exit(report(error, as_json=bool(kwargs.get("as_json")))) from None
        except Exception as error:
            errors = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
            if not all(isinstance(part, CommandError) or is_kafka_error(part) for part in errors):
                raise
            call = Call(needs, kwargs)
            raise typer.Exit(report(*errors, as_json=bool(kwargs.get("as_json")), call=call)) from None

    @functools.wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        report_warning = functools.partial(warn, as_json=bool(kwargs.get("as_json")))
        with command_config(kwargs.pop(COMMAND_CONFIG, None), report_warning):
            attempt(*args, **kwargs)

    return with_command_config(run)


def warn(message: str, *, as_json: bool) -> None:
    """Print a warning to stderr, as text or as JSON."""
    print(json.dumps({"warning": message}) if as_json else f"warning: {message}", file=sys.stderr)


class ErrorReport(NamedTuple):
    """Exit code, kind and hint of an error."""

    exit_code: int
    kind: str
    hint: str


class Call(NamedTuple):
    """The permissions that a command needs, and its arguments."""

    needs: Sequence[str]
    arguments: Mapping[str, object]


def report(*errors: Exception, as_json: bool, call: Call | None = None) -> int:
    """Print errors and their hints to stderr, and return the exit code of the first error."""
    reports = [_with_specific_hint(error, classify_error(error), call) for error in errors]
    for error, (_, kind, hint) in zip(errors, reports, strict=True):
        if as_json:
            details = error.details if isinstance(error, CommandError) else {}
            fields = {"error": kind, "message": _message(error), "hint": hint or None, **details}
            print(json.dumps(fields), file=sys.stderr)
        else:
            print(f"error: {_message(error)}", file=sys.stderr)
    for hint in dict.fromkeys(hint for _, _, hint in reports if hint and not as_json):
        print(f"  try: {hint}", file=sys.stderr)
    return reports[0].exit_code


def _with_specific_hint(error: Exception, error_report: ErrorReport, call: Call | None) -> ErrorReport:
    """Return the report with a hint made from the arguments: similar names in the cluster, or a missing permission."""
    exit_code, kind, hint = error_report
    has_own_hint = isinstance(error, CommandError) and hint
    if call is None or has_own_hint or exit_code not in (NOT_FOUND, REFUSED):
        return error_report
    from barnabas.cli.support.advice import permission_hint, similar_names

    names = similar_names(kind, call.arguments)
    suggestion = f"{' or '.join(names)}, which {'exists' if len(names) == 1 else 'exist'}; " if names else ""
    return ErrorReport(exit_code, kind, suggestion + (permission_hint(call.needs, kind, str(error)) or hint))


def _message(error: Exception) -> str:
    """Return the message of an error, without the errno of an OSError, and without values of variables."""
    if type(error).__str__ is OSError.__str__ and isinstance(error, OSError) and error.filename is not None:
        return without_values(f"{error.filename}: {error.strerror}")
    return without_values(str(error))


def classify_error(error: Exception) -> ErrorReport:
    """Map an exception to an exit code, an error kind and a hint."""
    if isinstance(error, CommandError):
        return ErrorReport(error.exit_code, error.kind, error.hint)
    if is_kafka_error(error):
        name: str = error.code.name  # type: ignore[attr-defined]  # a KafkaError; not imported for speed
        return ErrorReport(_EXIT_CODES.get(name, FAILED), name, _HINTS.get(name, ""))
    if isinstance(error, ConnectionError):
        kind, hint = _CONNECTIONS.get(type(error).__name__, ("UNREACHABLE", _HINT_UNREACHABLE))
        return ErrorReport(UNREACHABLE, kind, _HINT_TLS if _is_about_certificates(error) else hint)
    if isinstance(error, FileNotFoundError):
        return ErrorReport(NOT_FOUND, "FILE_NOT_FOUND", "")
    if isinstance(error, ValueError):
        return ErrorReport(WRONG_USE, "WRONG_USE", "")
    return ErrorReport(FAILED, "FAILED", "")


def _is_about_certificates(error: ConnectionError) -> bool:
    """Whether a TLS handshake has failed, unless the other side does not use TLS."""
    from ssl import SSLError

    cause: BaseException | None = error
    while isinstance(cause, ConnectionError):
        cause = cause.__cause__
    return isinstance(cause, SSLError) and "WRONG_VERSION_NUMBER" not in str(cause)


def is_kafka_error(error: Exception) -> bool:
    """Whether this is an error code of the Kafka protocol, from a broker or from the client."""
    from barnabas.wire.errors import KafkaError

    return isinstance(error, KafkaError)


def _discard_stdout() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit does not fail on the closed pipe again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
