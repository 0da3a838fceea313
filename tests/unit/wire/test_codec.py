"""Every message in every version agrees with kio, whose schemas come from Kafka independently."""

import random
from contextlib import suppress
from importlib import import_module

import pytest

from barnabas.wire.codec import DecodeError, Repeated, decode, encode, encode_parts
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.wire.messages.index import APIS
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message
from support.kio_messages import knows, read_by_kio, written_by_kio
from support.random_structs import random_struct


def messages() -> list[type[Message]]:
    found = []
    for module_name, api_name in APIS.values():
        module = import_module(f"barnabas.wire.messages.{module_name}")
        found += [getattr(module, f"{api_name}Request"), getattr(module, f"{api_name}Response")]
    return found


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.__name__)
def test_every_version_is_decoded_and_encoded_as_by_kio(message):
    rng = random.Random(message.__name__)
    for version in range(message.VERSIONS.first, message.VERSIONS.last + 1):
        for _ in range(12):
            original = random_struct(message, version, rng)
            encoded = bytes(encode(original, version))
            assert decode(message, version, encoded) == original
            assert decode(message, version, memoryview(encoded)) == original
            if knows(message, version):
                value = read_by_kio(message, version, encoded)
                assert written_by_kio(message, version, value) == encoded


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.__name__)
def test_truncated_bytes_raise_only_decode_errors(message):
    rng = random.Random(message.__name__)
    for version in {message.VERSIONS.first, message.VERSIONS.last}:
        encoded = bytes(encode(random_struct(message, version, rng), version))
        for size in range(len(encoded)):
            with suppress(
                DecodeError
            ):  # truncation within tagged fields at the end may leave a complete message
                decode(message, version, encoded[:size])


def test_random_bytes_are_decoded_or_malformed_with_bounded_memory():
    rng = random.Random(0)
    for _ in range(5_000):
        message = rng.choice((MetadataRequest, CreateTopicsRequest, ProduceRequest))
        version = rng.randint(message.VERSIONS.first, message.VERSIONS.last)
        garbage = rng.randbytes(rng.randrange(60))
        try:
            decode(message, version, garbage)
        except DecodeError:
            continue


def test_fields_that_a_version_lacks_have_their_default():
    request = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=2)], validate_only=True)
    assert decode(CreateTopicsRequest, 0, encode(request, 0)).validate_only is False
    assert decode(CreateTopicsRequest, 1, encode(request, 1)).validate_only is True


def test_unknown_tagged_fields_are_skipped():
    request = bytes(encode(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4))
    assert request.endswith(b"\x00")
    tagged = request[:-1] + b"\x01\x63\x02ab"
    assert decode(ApiVersionsRequest, 4, tagged).client_software_name == "x"


def test_a_null_and_an_empty_topic_list_are_distinct():
    for version in range(1, 14):
        assert decode(MetadataRequest, version, encode(MetadataRequest(topics=None), version)).topics is None
        assert decode(MetadataRequest, version, encode(MetadataRequest(topics=[]), version)).topics == []


def test_null_in_a_field_that_is_not_nullable_is_malformed():
    with pytest.raises(DecodeError, match="null where the array topics must be"):
        decode(CreateTopicsRequest, 4, b"\xff\xff\xff\xff\x00\x00\x00\x00\x00")


def test_a_huge_array_count_is_rejected_before_allocation():
    with pytest.raises(DecodeError, match="2147483647 elements"):
        decode(MetadataRequest, 1, b"\x7f\xff\xff\xff")


def test_elements_of_all_arrays_count_together_whatever_their_size():
    partitions = [PartitionProduceData(index=index, records=b"r" * 100) for index in range(3)]
    topics = [TopicProduceData(name="t", partition_data=partitions) for _ in range(5)]
    for version in (3, 9):
        encoded = bytes(encode(ProduceRequest(topic_data=topics), version))
        assert len(decode(ProduceRequest, version, encoded, 0, 20).topic_data) == 5
        with pytest.raises(DecodeError, match="it has more than 19 elements"):
            decode(ProduceRequest, version, encoded, 0, 19)


def test_a_null_array_does_not_raise_the_element_limit():
    resources = [DescribeConfigsResource(resource_type=2, configuration_keys=None) for _ in range(9)]
    encoded = bytes(encode(DescribeConfigsRequest(resources=resources), 4))
    with pytest.raises(DecodeError, match="more than 8 elements"):
        decode(DescribeConfigsRequest, 4, encoded, 0, 8)


def test_unknown_tagged_fields_count_as_elements():
    request = bytes(encode(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4))
    tagged = request[:-1] + b"\x09" + b"\x63\x00" * 9
    assert decode(ApiVersionsRequest, 4, tagged, 0, 9)
    with pytest.raises(DecodeError, match="more than 8 elements"):
        decode(ApiVersionsRequest, 4, tagged, 0, 8)


def test_a_tagged_field_is_not_read_beyond_its_size():
    request = bytes(encode(FetchRequest(cluster_id="abc"), 12))
    assert request.endswith(b"\x01\x00\x04\x04abc")
    assert decode(FetchRequest, 12, request).cluster_id == "abc"
    short = request.replace(b"\x01\x00\x04\x04abc", b"\x01\x00\x02\x04abc")
    with pytest.raises(DecodeError, match="longer than it says"):
        decode(FetchRequest, 12, short)


def test_record_data_is_a_view_of_the_buffer_it_was_read_from():
    data = PartitionProduceData(index=0, records=b"record bytes")
    encoded = encode(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[data])]), 9)
    buffer = memoryview(encoded)
    records = decode(ProduceRequest, 9, buffer).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    encoded[encoded.index(b"record") : encoded.index(b"record") + 6] = b"RECORD"
    assert bytes(records) == b"RECORD bytes"


def test_record_data_is_not_copied_into_the_parts():
    records = memoryview(b"x" * 1000)
    partitions = [PartitionData(partition_index=i, records=records[: 10 * i]) for i in range(4)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    for version in (4, 11, 12, 18):
        parts = encode_parts(response, version, bytearray(b"head"))
        assert b"".join(parts) == b"head" + encode(response, version)
        assert [
            part.nbytes for part in parts if isinstance(part, memoryview) and part.obj is records.obj
        ] == [10, 20, 30]


def test_messages_are_compared_and_printed_by_their_fields():
    assert MetadataRequestTopic(name="a") == MetadataRequestTopic(name="a")
    assert MetadataRequestTopic(name="a") != MetadataRequestTopic(name="b")
    assert "name='a'" in repr(MetadataRequestTopic(name="a"))


@pytest.mark.parametrize("version", [4, 7])
def test_a_repeated_list_is_encoded_like_any_other_in_every_version(version: int) -> None:
    configs = [CreatableTopicConfig(name=name, value="1") for name in ("a", "b")]
    repeated = Repeated(configs)

    def encoded(configs: list[CreatableTopicConfig]) -> bytes:
        topics = [CreatableTopic(name=name, configs=configs) for name in ("one", "two")]
        return bytes(encode(CreateTopicsRequest(topics=topics), version))

    assert encoded(repeated) == encoded(repeated) == encoded(configs)
    assert encoded(Repeated([])) == encoded([])


def test_a_list_of_runs_is_encoded_like_any_other_and_long_runs_are_stored_once() -> None:
    short, long = (Repeated([CreatableTopicConfig(name="a", value=size * "x")]) for size in (10, 10_000))
    configs = Repeated.of_runs([short, long, short])
    assert [config.name for config in configs] == ["a", "a", "a"]

    def request(configs: list[CreatableTopicConfig]) -> CreateTopicsRequest:
        topics = [CreatableTopic(name=name, configs=configs) for name in ("one", "two")]
        return CreateTopicsRequest(topics=topics)

    parts = encode_parts(request(configs), 7, bytearray())
    assert b"".join(parts) == bytes(encode(request(list(configs)), 7))
    first, second = (part for part in parts if len(part) >= 10_000)
    assert first is second
