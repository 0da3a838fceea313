import asyncio
import gc
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.dispatch import (
    DECODED_ELEMENTS_MAX,
    LARGE_REQUEST_BYTES,
    REQUEST_BYTES_MAX,
    REQUEST_ELEMENTS_MAX,
    Dispatcher,
    RequestRejectedError,
    Response,
    Undecoded,
    encode_response,
    read_header,
)
from barnabas.metadata.audit.difference import Difference
from barnabas.telemetry.requests import RequestStatistics
from barnabas.wire.barnabas_messages import is_kafka_api
from barnabas.wire.codec import DecodeError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.schema import Message
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import APIS, RunningNode, frame_of, response_of, running_node

Handle = Callable[[Any, Any], Awaitable[Any]]


def undecoded(node: RunningNode, frame: bytes) -> Undecoded:
    _, request = node.dispatcher.parse(memoryview(bytearray(frame)), node.connection)
    assert isinstance(request, Undecoded)
    return request


def refused(node: RunningNode, frame: bytes) -> RequestRejectedError:
    with pytest.raises(RequestRejectedError) as raised:
        node.dispatcher.parse(memoryview(bytearray(frame)), node.connection)
    assert str(raised.value)
    return raised.value


def with_handler(node: RunningNode, api_key: int, handle: Handle) -> None:
    """Replace one API's handler."""
    node.broker.apis = {**node.broker.apis, api_key: replace(APIS[api_key], handle=handle)}


# Headers


@pytest.mark.parametrize("client_id", [None, "", "some client", "ü"])
@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_a_header_is_decoded_with_its_client_id(client_id: str | None, version: int) -> None:
    frame = frame_of(MetadataRequest(topics=[]), version, correlation_id=99, client_id=client_id)
    header = read_header(frame, APIS)
    assert header[:4] == (3, version, 99, client_id)
    assert header.body_position == 10 + len((client_id or "").encode()) + (version >= 9)


def test_tagged_fields_of_a_flexible_header_are_skipped() -> None:
    start = struct.pack(">hhih", 3, 9, 1, -1)
    header = read_header(start + b"\x01\x05\x03abc" + b"body", APIS)
    assert header.body_position == len(start) + 6


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\x03\0\x09\0\0\0",
        struct.pack(">hhih", 3, 0, 1, 5) + b"abc",
        struct.pack(">hhih", 3, 0, 1, 2) + b"\xff\xff",
        struct.pack(">hhih", 3, 9, 1, -1),
        struct.pack(">hhih", 3, 9, 1, -1) + b"\x01\x05\x7fabc",
        struct.pack(">hhih", 3, 9, 1, -1) + b"\xff\xff\xff\xff\xff\xff",
    ],
)
def test_an_invalid_header_closes_the_connection(frame: bytes) -> None:
    with pytest.raises(RequestRejectedError, match="a request header cannot be read") as raised:
        read_header(memoryview(frame), APIS)
    assert raised.value.response is None


# Versions


@pytest.mark.parametrize(
    ("api_key", "version", "reason"),
    [
        (999, 0, "api key 999 is not served"),
        (-1, 0, "api key -1 is not served"),
        (4, 0, "api key 4 is not served"),
        (3, 14, "Metadata version 14 is not served: versions 0 to 13 are"),
        (3, -1, "Metadata version -1 is not served"),
        (19, 1, "CreateTopics version 1 is not served: versions 2 to 7 are"),
        (0, 2, "Produce version 2 is not served: versions 3 to 13 are"),
    ],
)
def test_an_unsupported_version_gets_an_error_and_closes(
    tmp_path: Path, api_key: int, version: int, reason: str
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            frame = struct.pack(">hhih", api_key, version, 42, -1) + bytes(20)
            error = refused(node, frame)
            assert reason in str(error)
            assert error.response == struct.pack(">iih", 6, 42, ErrorCode.UNSUPPORTED_VERSION)

    scenario()


@pytest.mark.parametrize("version", [5, 100, 2**15 - 1, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0_with_the_table(
    tmp_path: Path, version: int
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            tags = b"\0" if version > 4 else b""
            frame = struct.pack(">hhih", 18, version, 7, -1) + tags + b"whatever this means"
            answer = await node.send(frame)
            assert answer is not None
            response = response_of(ApiVersionsResponse, 0, answer)
            assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert {api.api_key: api.max_version for api in response.api_keys} == {
                key: spec.versions.last
                for key, spec in APIS.items()
                if is_kafka_api(key) and key not in (71, 72)  # client telemetry has no receiver here
            }

    scenario()


@pytest.mark.parametrize("version", range(5))
def test_api_versions_returns_served_apis_in_every_version(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            request = ApiVersionsRequest(client_software_name="lib", client_software_version="1.0")
            response = await node.ask(request, version)
            assert response.error_code == 0
            for api in response.api_keys:
                assert api.min_version <= APIS[api.api_key].versions.first
                assert api.max_version == APIS[api.api_key].versions.last
            assert node.connection.client_software_name == ("lib" if version >= 3 else "unknown")

    scenario()


# Bodies


@pytest.mark.parametrize("api_key", APIS)
def test_a_truncated_body_closes_the_connection(tmp_path: Path, api_key: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            spec = APIS[api_key]
            for version in range(spec.versions.first, spec.versions.last + 1):
                whole = frame_of(spec.request(), version)
                header_bytes = read_header(whole, APIS).body_position
                for size in range(header_bytes, len(whole)):
                    error = refused(node, whole[:size])
                    assert error.response is None
                    assert f"{spec.name}Request version {version}" in str(error)

    scenario()


@settings(max_examples=300)
@given(data=st.data())
def test_arbitrary_bytes_raise_only_decode_errors(data: st.DataObject) -> None:
    api_key = data.draw(st.sampled_from(sorted(APIS)))
    spec = APIS[api_key]
    version = data.draw(st.integers(spec.versions.first, spec.versions.last))
    frame = struct.pack(">hhih", api_key, version, 1, -1) + data.draw(st.binary(max_size=60))
    parser = Dispatcher(_Apis(), RequestStatistics())  # type: ignore[arg-type]
    with suppress(RequestRejectedError):
        parser.parse(memoryview(bytearray(frame)), _Counter())  # type: ignore[arg-type]


class _Apis:
    apis = APIS


class _Counter:
    requests_count = 0


@on_loop
async def test_produced_records_are_a_view_of_the_frame_and_other_data_is_copied(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        data = PartitionProduceData(index=0, records=bytes(batch(b"a")))
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        frame = bytearray(frame_of(request, 9))
        _, parsed = node.dispatcher.parse(memoryview(frame), node.connection)
        assert isinstance(parsed, ProduceRequest)
        records = parsed.topic_data[0].partition_data[0].records
        frame[-10:] = b"changed!!!"
        assert bytes(records or b"") in bytes(frame)
        with pytest.raises(BufferError):
            frame.clear()
        other = bytearray(frame_of(MetadataRequest(topics=[MetadataRequestTopic(name="abc")]), 9))
        _, metadata = node.dispatcher.parse(memoryview(other), node.connection)
        other[-10:] = bytes(10)
        assert metadata == MetadataRequest(topics=[MetadataRequestTopic(name="abc")])


@on_loop
async def test_parsed_requests_are_counted_on_their_connection(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        for _ in range(3):
            await node.ask(MetadataRequest(topics=[]))
        refused(node, struct.pack(">hhih", 999, 0, 1, -1))
        assert node.connection.requests_count == 3


# Handlers


@on_loop
async def test_an_error_of_a_handler_is_answered_in_the_apis_format_and_counted(tmp_path: Path) -> None:
    async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "not like this")

    async with running_node(tmp_path) as node:
        with_handler(node, 19, handle)
        topics = [CreatableTopic(name="a"), CreatableTopic(name="b")]
        response = await node.ask(CreateTopicsRequest(topics=topics))
        assert [(topic.name, topic.error_code, topic.error_message) for topic in response.topics] == [
            ("a", ErrorCode.INVALID_REQUEST, "not like this"),
            ("b", ErrorCode.INVALID_REQUEST, "not like this"),
        ]
        statistics = node.dispatcher.statistics
        assert (statistics.apis[19].errors_count, statistics.apis[19].requests_count) == (1, 1)
        assert not statistics.crashes


@pytest.mark.parametrize("fault", [ZeroDivisionError("x"), AssertionError("y"), KeyError("z")])
def test_a_crash_of_a_handler_is_unknown_server_error_and_counted(tmp_path: Path, fault: Exception) -> None:
    async def handle(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
        raise fault

    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            with_handler(node, 3, handle)
            response = await node.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
            assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert [topic.error_code for topic in response.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]
            assert node.dispatcher.statistics.crashes == {"Metadata": 1}

    scenario()


@on_loop
async def test_a_response_that_cannot_be_encoded_is_unknown_server_error(tmp_path: Path) -> None:
    async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="x" * 40_000)])

    async with running_node(tmp_path) as node:
        with_handler(node, 19, handle)
        response = await node.ask(CreateTopicsRequest(topics=[CreatableTopic(name="a")]), 4)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert node.dispatcher.statistics.crashes == {"CreateTopics": 1}


@on_loop
async def test_a_request_whose_response_cannot_be_encoded_is_audited_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        context.record_change("topic/a", "moved", "here", "there")
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="x" * 40_000)])

    async def record_events(
        _actor: object, _refusals: object, _warnings: object, differences: object
    ) -> None:
        recorded.append(differences)

    recorded: list[object] = []
    async with running_node(tmp_path) as node:
        with_handler(node, 19, handle)
        monkeypatch.setattr(node.broker.metadata, "record_events", record_events)
        await node.ask(CreateTopicsRequest(topics=[CreatableTopic(name="a")]), 4)
        assert recorded == [[Difference("topic/a", "moved", "here", "there")]]


@on_loop
async def test_a_cancelled_request_gets_no_response(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=9)])]
        request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics)
        asking = asyncio.create_task(node.ask(request, 12))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not node.dispatcher.statistics.crashes


@on_loop
async def test_an_interceptor_replaces_every_handler_including_fast_paths(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        asked: list[str] = []

        async def intercept(context: RequestContext, request: Message) -> Response:
            asked.append(context.api.name)
            if context.api.name == "Produce":
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            passed: Response = await context.api.handle(context, request)
            return passed

        node.dispatcher.interceptor = intercept
        data = PartitionProduceData(index=0, records=bytes(batch(b"a")))
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        response = await node.ask(request, 12)
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert node.partition("t").log.log_end_offset == 0
        assert (await node.ask(MetadataRequest(topics=[]))).error_code == 0
        assert asked == ["Produce", "Metadata"]


# Answers


def context_for(api_key: int, version: int) -> RequestContext:
    nothing: Any = None
    return RequestContext(nothing, nothing, APIS[api_key], version, 7, None)


@pytest.mark.parametrize("api_key", APIS)
def test_every_response_has_its_size_and_correlation_id(api_key: int) -> None:
    spec = APIS[api_key]
    for version in range(spec.versions.first, spec.versions.last + 1):
        parts = encode_response(context_for(api_key, version), spec.response())
        assert response_of(spec.response, version, b"".join(parts)) == spec.response()


def test_api_versions_responses_keep_the_old_header_in_every_version() -> None:
    for version in range(5):
        [answer] = encode_response(context_for(18, version), ApiVersionsResponse(error_code=5))
        assert bytes(answer[8:10]) == b"\0\x05"


def test_an_encoded_body_is_sent_as_it_is() -> None:
    body = b"some body" * 1000
    parts = encode_response(context_for(3, 9), EncodedResponse(body, 0))
    assert parts[1] is body
    assert b"".join(parts) == struct.pack(">iiB", 5 + len(body), 7, 0) + body


def test_record_data_is_not_copied_into_a_response() -> None:
    records = memoryview(bytearray(b"records of a log"))
    data = PartitionData(partition_index=0, records=records)
    topic = FetchableTopicResponse(topic="t", partitions=[data])
    response: Message = FetchResponse(responses=[topic])
    parts = encode_response(context_for(1, 4), response)
    assert any(part is records for part in parts)
    records[:] = b"RECORDS OF A LOG"
    assert b"RECORDS OF A LOG" in b"".join(parts)


# Fast paths


@on_loop
async def test_a_request_on_the_fast_path_is_counted(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        data = PartitionProduceData(index=0, records=bytes(batch(b"a")))
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        for _ in range(3):
            await node.ask(request, 12)
        assert node.dispatcher.statistics.apis[0].requests_count == 3
        assert node.connection.requests_count == 3


@on_loop
async def test_an_error_on_a_fast_path_is_answered_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        data = PartitionProduceData(index=0, records=bytes(batch(b"a")))
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        monkeypatch.setattr(node.partition("t"), "append_as_leader", lambda *_: 1 / 0)
        response = await node.ask(request, 12)
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert node.dispatcher.statistics.crashes == {"Produce": 1}


def metadata_request_of(size_bytes: int) -> bytes:
    names = [MetadataRequestTopic(name="n" * 30_000)] * (size_bytes // 30_000)
    return frame_of(MetadataRequest(topics=names, allow_auto_topic_creation=False), 4)


def metadata_request_of_many() -> bytes:
    names = [MetadataRequestTopic(name="name")] * (DECODED_ELEMENTS_MAX + 1)
    assert len(names) * 6 < LARGE_REQUEST_BYTES < len(names) * 10
    request = MetadataRequest(topics=[*names[1:], MetadataRequestTopic(name="n" * LARGE_REQUEST_BYTES)])
    return frame_of(request, 4)


@on_loop
async def test_a_large_request_of_few_elements_is_decoded_on_the_loop(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        frame = memoryview(bytearray(metadata_request_of(4 * LARGE_REQUEST_BYTES)))
        context, request = node.dispatcher.parse(frame, node.connection)
        assert isinstance(request, MetadataRequest)
        assert not context.is_large


@on_loop
async def test_a_large_request_is_decoded_and_garbage_collection_resumes(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        frame = metadata_request_of_many()
        request = undecoded(node, frame).decode()
        assert isinstance(request, MetadataRequest)
        assert len(request.topics or []) == DECODED_ELEMENTS_MAX + 1
        assert gc.isenabled()


@on_loop
async def test_a_large_invalid_request_closes_its_connection(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        frame = metadata_request_of_many()[:-1]
        context, request = node.dispatcher.parse(memoryview(bytearray(frame)), node.connection)
        assert await node.dispatcher.respond(context, request) is None
        assert context.close_after
        assert gc.isenabled()


@on_loop
async def test_a_large_request_without_records_is_rejected_without_decoding(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        error = refused(node, metadata_request_of(REQUEST_BYTES_MAX + 60_000))
        assert f"may have at most {REQUEST_BYTES_MAX}" in str(error)
        assert error.response is None


@on_loop
async def test_a_request_of_too_many_elements_is_rejected_whatever_their_size(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        names = [MetadataRequestTopic(name="")] * (REQUEST_ELEMENTS_MAX + 1)
        with pytest.raises(DecodeError, match=f"more than {REQUEST_ELEMENTS_MAX} elements"):
            undecoded(node, frame_of(MetadataRequest(topics=names), 4)).decode()
        assert undecoded(node, frame_of(MetadataRequest(topics=names[1:]), 4)).decode()
