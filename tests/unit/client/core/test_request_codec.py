import struct

import pytest

from barnabas.client.core.request_codec import api_name, decode_response, encode_request, response_type
from barnabas.wire.codec import DecodeError, encode
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def test_a_request_is_framed_with_its_length_and_header() -> None:
    frame = b"".join(encode_request(MetadataRequest(topics=[]), 1, 7, "me"))
    assert frame == struct.pack(">ihhih2si", 16, 3, 1, 7, 2, b"me", 0)


def test_a_flexible_version_has_tagged_fields_in_its_header() -> None:
    frame = b"".join(encode_request(MetadataRequest(topics=[]), 9, 7, "me"))
    assert frame[:17] == struct.pack(">ihhih2sB", len(frame) - 4, 3, 9, 7, 2, b"me", 0)


def test_record_data_is_not_copied_into_the_frame() -> None:
    records = bytes(100)
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
    parts = encode_request(ProduceRequest(acks=1, topic_data=[data]), 9, 1, "me")
    assert any(part is records for part in parts)
    assert struct.unpack(">i", bytes(parts[0][:4]))[0] == sum(map(len, parts)) - 4


def test_the_response_class_is_declared_with_the_request() -> None:
    assert response_type(ProduceRequest).__name__ == "ProduceResponse"
    assert api_name(ProduceRequest) == api_name(response_type(ProduceRequest)) == "Produce"


@pytest.mark.parametrize("version", [8, 9])
def test_a_response_is_decoded_after_either_kind_of_header(version: int) -> None:
    header = bytearray(4) + (b"\0" if version == 9 else b"")
    frame = encode(MetadataResponse(cluster_id="c"), version, header)
    assert decode_response(MetadataRequest, version, frame) == MetadataResponse(cluster_id="c")


def test_an_unsupported_version_of_api_versions_is_decoded_as_version_0() -> None:
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=2)])
    frame = encode(refusal, 0, bytearray(4))
    assert decode_response(ApiVersionsRequest, 4, frame) == refusal


@pytest.mark.parametrize("frame", [bytes(4), bytes(5), bytes(4) + b"\xff\xff"])
def test_a_truncated_frame_is_malformed(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_response(ApiVersionsRequest, 4, frame)
    with pytest.raises(DecodeError):
        decode_response(MetadataRequest, 9, frame)
