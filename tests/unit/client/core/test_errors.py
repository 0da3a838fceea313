"""Texts of broker errors."""

from barnabas.client.admin.scram import describe_scram_request
from barnabas.client.core.errors import error_for
from barnabas.wire.errors import ErrorCode


def test_a_code_has_its_message() -> None:
    assert error_for(0) is None
    error = error_for(ErrorCode.INVALID_CONFIG, "retention.ms is no number")
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, "retention.ms is no number")


def test_an_unknown_code_is_reported() -> None:
    error = error_for(9_999)
    assert error is not None
    assert "error code 9999, unknown to this client: no message" in str(error)


def test_kafkas_description_of_the_rejected_request_is_omitted() -> None:
    printed = (
        "Request Request(processor=5, connectionId=127.0.0.1:9092-127.0.0.1:4156-5-0, session=Session@5a98ed37, "
        "envelope=Some(Request(processor=2, buffer=java.nio.HeapByteBuffer[pos=86 lim=86], envelope=None))) "
        "needs DESCRIBE permission."
    )
    error = error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, printed)
    assert error is not None
    assert error.message == "DESCRIBE permission on it is needed"


def test_all_users_are_requested_so_that_kafka_can_reject_it() -> None:
    assert describe_scram_request(None).users == []
    assert [each.name for each in describe_scram_request(["carol"]).users or ()] == ["carol"]
