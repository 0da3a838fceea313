import errno
import json
import ssl
from typing import Any

import pytest
import typer

from barnabas.cli.support.failures import (
    NOT_FOUND,
    CommandError,
    classify_error,
    handle_errors,
    report,
    wrong_use,
)
from barnabas.cli.support.options import key_value_pairs
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import BrokerUnreachable, ConnectionLost, RequestTimedOut
from barnabas.wire.errors import ErrorCode, KafkaError

UNREACHABLE = BrokerUnreachable(BrokerAddress("h", 1), "no connection")


@pytest.mark.parametrize(
    ("error", "exit_code", "hint"),
    [
        (CommandError("no"), 1, ""),
        (wrong_use("no", "yes"), 2, "yes"),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 3, "barnabas topics list"),
        (KafkaError(ErrorCode.POLICY_VIOLATION, "no"), 4, "comply with the policy"),
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE), 1, "max.message.bytes"),
        (UNREACHABLE, 5, "barnabas serve"),
        (RequestTimedOut(BrokerAddress("h", 1), "no answer"), 5, "may have processed the request"),
        (KafkaError(ErrorCode.INVALID_REQUEST), 1, ""),
        (KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED), 4, "--command-config"),
        (CommandError("no", exit_code=NOT_FOUND), 3, ""),
        (FileNotFoundError("x"), 3, ""),
        (PermissionError("x"), 1, ""),
        (ValueError("x"), 2, ""),
    ],
)
def test_each_error_has_its_exit_code_and_hint(error: Exception, exit_code: int, hint: str) -> None:
    classified = classify_error(error)
    assert classified[0] == exit_code
    assert hint in classified[2]


def test_a_failed_tls_handshake_has_a_hint_to_the_certificates() -> None:
    address = BrokerAddress("h", 1)
    refused, lost = BrokerUnreachable(address, "no"), ConnectionLost(address, "no")
    refused.__cause__ = ssl.SSLCertVerificationError(1, "self-signed certificate")
    lost.__cause__ = refused  # as with TLS 1.3, where the client learns it with the first response
    assert "ssl.truststore.location" in classify_error(refused).hint
    assert "ssl.truststore.location" in classify_error(lost).hint


def test_a_listener_without_tls_has_no_hint_to_the_certificates() -> None:
    error = BrokerUnreachable(BrokerAddress("h", 1), "no")
    error.__cause__ = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    assert "ssl." not in classify_error(error).hint


def test_errors_are_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(wrong_use("bad", "good"), as_json=False) == 2
    assert capsys.readouterr().err == "error: bad\n  try: good\n"
    report(KafkaError(ErrorCode.INVALID_REQUEST, "bad"), as_json=True)
    printed = json.loads(capsys.readouterr().err)
    assert printed == {"error": "INVALID_REQUEST", "message": "INVALID_REQUEST: bad", "hint": None}


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [(KeyboardInterrupt(), 130), (UNREACHABLE, 5), (KafkaError(ErrorCode.INVALID_CONFIG), 1)],
)
def test_a_command_that_raises_exits_with_the_code(error: BaseException, exit_code: int) -> None:
    @handle_errors
    def command(**_: Any) -> None:
        raise error

    with pytest.raises(typer.Exit) as raised:
        command(as_json=True)
    assert raised.value.exit_code == exit_code


def test_an_unreadable_file_is_reported_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", "nofile")
    assert report(error, as_json=False) == 3
    assert capsys.readouterr().err == "error: nofile: No such file or directory\n"


def test_internal_errors_keep_their_traceback() -> None:
    @handle_errors
    def command() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        command()


def test_pairs_are_split_at_the_first_equals_sign() -> None:
    assert key_value_pairs(["a=b=c", "d="], "--set") == [("a", "b=c"), ("d", "")]
    assert key_value_pairs(None, "--set") == []


@pytest.mark.parametrize("pair", ["a", "=b", ""])
def test_a_pair_without_key_or_equals_sign_is_rejected(pair: str) -> None:
    with pytest.raises(CommandError, match=f"--set {pair}: must have the form key=value"):
        key_value_pairs([pair], "--set")
