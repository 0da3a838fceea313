"""ListOffsets decoded and encoded in place equals that of the message classes and of kio."""

from typing import Any

from hypothesis import given

from barnabas.api.data.list_offsets_codec import ListOffsetsData, data_of, read_request, write_response
from barnabas.wire.codec import decode
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from support.kio_messages import read_by_kio, written_by_kio
from support.message_bodies import Body, bodies, damaged_bodies, read_or_none
from support.nodes import APIS

VERSIONS = APIS[ListOffsetsRequest.API_KEY].versions


def data_by_kio(version: int, encoded: bytes) -> ListOffsetsData:
    """Decode the bytes with kio."""
    request: Any = read_by_kio(ListOffsetsRequest, version, encoded)
    topics = [
        (
            topic.name,
            [
                (each.partition_index, getattr(each, "current_leader_epoch", -1), each.timestamp)
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsData(request.replica_id, getattr(request, "isolation_level", 0), topics)


@given(bodies(ListOffsetsRequest, VERSIONS))
def test_requests_decode_as_with_kio(body: Body) -> None:
    assert read_request(body.encoded, body.version) == data_by_kio(body.version, body.encoded)


@given(damaged_bodies(ListOffsetsRequest, VERSIONS))
def test_damaged_requests_decode_as_with_the_message_class(damaged: tuple[int, bytes]) -> None:
    version, body = damaged
    assert read_or_none(lambda: read_request(body, version)) == read_or_none(
        lambda: data_of(decode(ListOffsetsRequest, version, body))
    )


@given(bodies(ListOffsetsResponse, VERSIONS))
def test_responses_encode_as_with_kio(body: Body) -> None:
    version, response, encoded = body
    assert isinstance(response, ListOffsetsResponse)
    topics = [
        (
            topic.name,
            [
                (each.partition_index, each.error_code, each.timestamp, each.offset, each.leader_epoch)
                for each in topic.partitions
            ],
        )
        for topic in response.topics
    ]
    written, throttle_position = write_response(version, topics)
    if throttle_position is not None:
        written[throttle_position : throttle_position + 4] = response.throttle_time_ms.to_bytes(4, "big")
    by_kio = read_by_kio(ListOffsetsResponse, version, encoded)
    assert written == encoded == written_by_kio(ListOffsetsResponse, version, by_kio)
