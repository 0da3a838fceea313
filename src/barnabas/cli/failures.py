"""How a command ends: exit codes, and errors that say what to do next."""

import functools
import json
import os
import struct
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple, ParamSpec

import typer

from barnabas.cli.catalogue import NAME
from barnabas.cli.login import COMMAND_CONFIG, command_config, with_command_config

OK = 0
FAILED = 1  #: whatever is none of these
WRONG_USE = 2  #: what was typed makes no sense
NOT_FOUND = 3  #: what was named is not there
REFUSED = 4  #: by an ACL, a policy, or at the login
UNREACHABLE = 5  #: no broker answered, or not in time
INTERRUPTED = 130  #: what shells say of a command ended by Ctrl-C

Arguments = ParamSpec("Arguments")

_HINTS = {
    "UNKNOWN_TOPIC_OR_PARTITION": "'barnabas topics list' shows what there is, 'barnabas topics create' adds to it",
    "TOPIC_ALREADY_EXISTS": "'--if-not-exists' makes that no error; 'barnabas topics describe' shows the topic",
    "OFFSET_OUT_OF_RANGE": "choose an offset in that range, or '--from-beginning'",
    "MESSAGE_TOO_LARGE": "send smaller records, or raise max.message.bytes of the topic",
    "INVALID_REPLICATION_FACTOR": "'barnabas metadata' shows how many brokers there are",
    "INVALID_PARTITIONS": "partitions can only be added: give a total above the present one",
    "NOT_ENOUGH_REPLICAS": "bring the missing replicas back, or lower min.insync.replicas of the topic",
    "REQUEST_TIMED_OUT": "the broker may still be at it: look before you try again",
    "POLICY_VIOLATION": "keep to the policy, or have whoever runs the cluster change it",
    "TOPIC_DELETION_DISABLED": "delete.topic.enable of the brokers forbids it",
    "BROKER_NOT_AVAILABLE": "'barnabas brokers list' shows what there is",
    "BROKER_ID_NOT_REGISTERED": "'barnabas brokers list --fenced' shows what there is",
    "VOTER_NOT_FOUND": "'barnabas quorum describe' shows what there is",
    "LOG_DIR_NOT_FOUND": "'barnabas log-dirs describe' shows what there is",
    "RESOURCE_NOT_FOUND": "'barnabas users list' shows what there is",
    "UNSUPPORTED_VERSION": "'barnabas brokers api-versions' shows what the broker serves",
    "INVALID_CONFIG": "'barnabas configs get --all' shows the keys that there are and their values",
    "TOPIC_AUTHORIZATION_FAILED": "ask for the ACL ('barnabas acls add'), or log in as a user who has it",
    "GROUP_AUTHORIZATION_FAILED": "ask for the ACL ('barnabas acls add'), or log in as a user who has it",
    "GROUP_ID_NOT_FOUND": "'barnabas groups list' shows what there is",
    "TRANSACTIONAL_ID_NOT_FOUND": "'barnabas transactions list' shows what there is",
    "NON_EMPTY_GROUP": "stop its members first, 'barnabas groups describe' shows them",
    "UNKNOWN_MEMBER_ID": "'barnabas groups describe' shows who is in the group",
    "GROUP_SUBSCRIBED_TO_TOPIC": "let its members leave the topic first, 'barnabas groups describe' shows them",
    "CLUSTER_AUTHORIZATION_FAILED": "have it allowed by 'barnabas acls add --cluster', or log in as somebody who may",
    "SECURITY_DISABLED": "start the broker with authorizer.class.name",
    "SASL_AUTHENTICATION_FAILED": "look at name and password in the file of --command-config",
    "ILLEGAL_SASL_STATE": "leave --command-config out, or choose the port of a listener with SASL",
    "UNSUPPORTED_SASL_MECHANISM": "choose another sasl.mechanism in the file of --command-config",
}
_HINT_UNREACHABLE = "start a broker with 'barnabas serve', or name another one with --bootstrap HOST:PORT"
_HINT_LOST = "if that listener asks for a login, say as whom with --command-config FILE"
_HINT_NOT_KAFKA = "see whether the port is that of a Kafka listener, and one without TLS"
_HINT_TIMED_OUT = "the broker may have processed the request; check before retrying"

#: Exit codes by the names of Kafka's errors; all others count as failed.
_EXIT_CODES = {
    "UNKNOWN_TOPIC_OR_PARTITION": NOT_FOUND,
    "UNKNOWN_TOPIC_ID": NOT_FOUND,
    "RESOURCE_NOT_FOUND": NOT_FOUND,
    "GROUP_ID_NOT_FOUND": NOT_FOUND,
    "TRANSACTIONAL_ID_NOT_FOUND": NOT_FOUND,
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
    "SASL_AUTHENTICATION_FAILED": REFUSED,
    "POLICY_VIOLATION": REFUSED,
    "TOPIC_DELETION_DISABLED": REFUSED,
}
#: What is said of a connection, by the names of the client's errors, which are not imported for speed.
_CONNECTIONS = {
    "ConnectionLost": ("CONNECTION_LOST", _HINT_LOST),
    "NotKafka": ("NOT_KAFKA", _HINT_NOT_KAFKA),
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
    """A command cannot do what was asked.

    In JSON, `kind` names the error (by default after the exit code), and `details` are further fields.
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
    """Arguments that make no sense."""
    return CommandError(message, hint=hint, exit_code=WRONG_USE)


def handle_errors(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The command, with whatever it raises printed for people (or, with `as_json`, for programs)."""

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
            too_large = wrong_use("a number is larger than Kafka's protocol can carry")
            raise typer.Exit(report(too_large, as_json=bool(kwargs.get("as_json")))) from None
        except (CommandError, ValueError, OSError) as error:
            raise typer.Exit(report(error, as_json=bool(kwargs.get("as_json")))) from None
        except Exception as error:
            errors = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
            if not all(isinstance(each, CommandError) or is_kafka_error(each) for each in errors):
                raise
            call = Call(str(run.__dict__.get(NAME, "")), kwargs)
            raise typer.Exit(report(*errors, as_json=bool(kwargs.get("as_json")), call=call)) from None

    @functools.wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        warn = functools.partial(_warn, as_json=bool(kwargs.get("as_json")))
        with command_config(kwargs.pop(COMMAND_CONFIG, None), warn):
            attempt(*args, **kwargs)

    return with_command_config(run)


def _warn(message: str, *, as_json: bool) -> None:
    print(json.dumps({"warning": message}) if as_json else f"warning: {message}", file=sys.stderr)


class ErrorReport(NamedTuple):
    """What an error comes to: an exit code, a name for its kind, and what to try next."""

    exit_code: int
    kind: str
    hint: str


class Call(NamedTuple):
    """A command, and what it was called with."""

    command: str
    arguments: Mapping[str, object]


def report(*errors: Exception, as_json: bool, call: Call | None = None) -> int:
    """Print errors and what to try next to stderr; gives the exit code, which is the first one's."""
    judged = [_advised(error, classify_error(error), call) for error in errors]
    for error, (_, code, hint) in zip(errors, judged, strict=True):
        if as_json:
            details = error.details if isinstance(error, CommandError) else {}
            fields = {"error": code, "message": _sentence(error), "hint": hint, **details}
            print(json.dumps(fields), file=sys.stderr)
        else:
            print(f"error: {_sentence(error)}", file=sys.stderr)
    for hint in dict.fromkeys(hint for _, _, hint in judged if hint and not as_json):
        print(f"  try: {hint}", file=sys.stderr)
    return judged[0][0]


def _advised(error: Exception, judged: ErrorReport, call: Call | None) -> ErrorReport:
    """The same with a better hint, where the cluster or the catalogue knows one."""
    exit_code, kind, hint = judged
    if call is None or exit_code not in (NOT_FOUND, REFUSED):
        return judged
    from barnabas.cli.advice import permission, similar_names

    names = similar_names(kind, call.arguments)
    resembling = f"{' or '.join(names)}, which there is; " if names else ""
    return ErrorReport(exit_code, kind, resembling + (permission(call.command, kind, str(error)) or hint))


def _sentence(error: Exception) -> str:
    """What is wrong, without the number that an error of the system has."""
    if type(error).__str__ is OSError.__str__ and isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def classify_error(error: Exception) -> ErrorReport:
    """Map an exception to an exit code, an error kind and a hint."""
    if isinstance(error, CommandError):
        return ErrorReport(error.exit_code, error.kind, error.hint)
    if is_kafka_error(error):
        name: str = error.code.name  # type: ignore[attr-defined]  # a KafkaError; not imported for speed
        return ErrorReport(_EXIT_CODES.get(name, FAILED), name, _HINTS.get(name, ""))
    if isinstance(error, ConnectionError):
        kind, hint = _CONNECTIONS.get(type(error).__name__, ("UNREACHABLE", _HINT_UNREACHABLE))
        return ErrorReport(UNREACHABLE, kind, hint)
    if isinstance(error, FileNotFoundError):
        return ErrorReport(NOT_FOUND, "FILE_NOT_FOUND", "")
    if isinstance(error, ValueError):
        return ErrorReport(WRONG_USE, "WRONG_USE", "")
    return ErrorReport(FAILED, "FAILED", "")


def is_kafka_error(error: Exception) -> bool:
    """Whether a broker (or the client on its behalf) refused."""
    from barnabas.wire.errors import KafkaError

    return isinstance(error, KafkaError)


def _discard_stdout() -> None:
    """Keep the interpreter's last flush from failing on the closed pipe once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
