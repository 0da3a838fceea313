"""Heartbeats decoded and encoded in place equal those of the message classes and of kio."""

from hypothesis import given

from barnabas.api.groups.heartbeat_codec import read_request, write_response
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.wire.codec import decode
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from support.kio_messages import read_by_kio, written_by_kio
from support.message_bodies import Body, bodies, damaged_bodies, read_or_none
from support.nodes import APIS

VERSIONS = APIS[HeartbeatRequest.API_KEY].versions


@given(bodies(HeartbeatRequest, VERSIONS))
def test_requests_decode_as_with_kio(body: Body) -> None:
    by_kio = read_by_kio(HeartbeatRequest, body.version, body.encoded)
    assert read_request(body.encoded, body.version) == Heartbeat(
        by_kio.group_id,
        by_kio.generation_id,
        by_kio.member_id,
        getattr(by_kio, "group_instance_id", None),
    )


@given(damaged_bodies(HeartbeatRequest, VERSIONS))
def test_damaged_requests_decode_as_with_the_message_class(damaged: tuple[int, bytes]) -> None:
    version, body = damaged
    assert read_or_none(lambda: read_request(body, version)) == read_or_none(
        lambda: _beat(decode(HeartbeatRequest, version, body))
    )


def _beat(request: HeartbeatRequest) -> Heartbeat:
    return Heartbeat(request.group_id, request.generation_id, request.member_id, request.group_instance_id)


@given(bodies(HeartbeatResponse, VERSIONS))
def test_responses_encode_as_with_kio(body: Body) -> None:
    assert isinstance(body.message, HeartbeatResponse)
    written, throttle_position = write_response(body.version, body.message.error_code)
    if throttle_position is not None:
        throttle = body.message.throttle_time_ms.to_bytes(4, "big")
        written = written[:throttle_position] + throttle + written[throttle_position + 4 :]
    by_kio = read_by_kio(HeartbeatResponse, body.version, body.encoded)
    assert written == body.encoded == written_by_kio(HeartbeatResponse, body.version, by_kio)
