import time
from typing import cast

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.batches import batch
from support.wire import Wire, produce_request


@pytest.fixture
def client(kafka: EmbeddedBroker) -> BlockingClient:
    with BlockingClient(kafka.bootstrap) as client:
        yield client


def metadata_of(client: BlockingClient, name: str) -> ErrorCode:
    response = client.admin.send(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
    return ErrorCode(response.topics[0].error_code)


def test_an_error_is_returned_exactly_as_often_as_requested(
    kafka: EmbeddedBroker, client: BlockingClient
) -> None:
    kafka.create_topic("t")
    fault = kafka.fail_next("Metadata", "TOPIC_AUTHORIZATION_FAILED", times=2)
    assert [metadata_of(client, "t") for _ in range(3)] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]
    assert fault.is_over
    assert fault.struck_count == 2


@pytest.mark.parametrize("api", ["Metadata", "metadata", 3])
@pytest.mark.parametrize("error", ["INVALID_REQUEST", "invalid_request", 42, ErrorCode.INVALID_REQUEST])
def test_apis_and_errors_are_named_or_numbered(
    kafka: EmbeddedBroker, client: BlockingClient, api: str | int, error: str | int
) -> None:
    kafka.fail_next(api, error)
    assert metadata_of(client, "t") is ErrorCode.INVALID_REQUEST


def test_a_failed_request_has_no_effect(kafka: EmbeddedBroker, client: BlockingClient) -> None:
    kafka.fail_next("Metadata", "INVALID_REQUEST")
    metadata_of(client, "t")
    assert kafka.topics() == {}


def test_a_misspelt_name_is_reported_with_the_nearest_one(kafka: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match=r"unknown API 'Prodcue'.*did you mean Produce"):
        kafka.fail_next("Prodcue", "INVALID_REQUEST")
    with pytest.raises(ValueError, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        kafka.fail_next("Produce", "NOT_LEADER_FOLLOWER")
    with pytest.raises(ValueError, match="NONE is not an error"):
        kafka.fail_next("Produce", 0)
    with pytest.raises(ValueError, match="times=0"):
        kafka.fail_next("Produce", 1, times=0)
    with pytest.raises(ValueError, match="unknown API 9999"):
        kafka.delay_next(9999, 1)


def test_a_fault_for_a_topic_affects_no_other(kafka: EmbeddedBroker, client: BlockingClient) -> None:
    for name in ("mine", "other"):
        kafka.create_topic(name)
    fault = kafka.fail_next("Metadata", "INVALID_REQUEST", topic="mine")
    assert metadata_of(client, "other") is ErrorCode.NONE
    assert metadata_of(client, "mine") is ErrorCode.INVALID_REQUEST
    assert fault.struck_count == 1


def fetch(
    client: BlockingClient, kafka: EmbeddedBroker, session_id: int, epoch: int, *topics: str
) -> FetchResponse:
    images = kafka.server.broker.image.topics
    request = FetchRequest(session_id=session_id, session_epoch=epoch, max_wait_ms=0, min_bytes=0)
    request.topics = [
        FetchTopic(topic=name, topic_id=images[name].topic_id, partitions=[FetchPartition()])
        for name in topics
    ]
    return cast("FetchResponse", client.admin.send(request))


def test_a_topic_is_matched_by_its_id_and_within_a_fetch_session(
    kafka: EmbeddedBroker, client: BlockingClient
) -> None:
    for name in ("mine", "other"):
        kafka.create_topic(name)
    first = fetch(client, kafka, 0, 0, "mine")
    second = fetch(client, kafka, 0, 0, "other")
    kafka.fail_next("Fetch", "KAFKA_STORAGE_ERROR", topic="mine", times=2)
    assert fetch(client, kafka, second.session_id, 1).error_code == ErrorCode.NONE
    assert fetch(client, kafka, first.session_id, 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert fetch(client, kafka, 0, -1, "mine").error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_topic_is_matched_as_a_config_resource(kafka: EmbeddedBroker, client: BlockingClient) -> None:
    kafka.create_topic("t")
    kafka.fail_next("DescribeConfigs", "TOPIC_AUTHORIZATION_FAILED", topic="t")
    resource = DescribeConfigsResource(resource_type=2, resource_name="t")
    response = client.admin.send(DescribeConfigsRequest(resources=[resource]))
    assert response.results[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_the_oldest_fault_applies_first(kafka: EmbeddedBroker, client: BlockingClient) -> None:
    kafka.fail_next("Metadata", "INVALID_REQUEST")
    kafka.fail_next("Metadata", "TOPIC_AUTHORIZATION_FAILED")
    assert metadata_of(client, "t") is ErrorCode.INVALID_REQUEST
    assert metadata_of(client, "t") is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_faults_can_be_removed(kafka: EmbeddedBroker, client: BlockingClient) -> None:
    kafka.create_topic("t")
    one = kafka.fail_next("Metadata", "INVALID_REQUEST")
    kafka.fail_next("Metadata", "INVALID_REQUEST")
    one.cancel()
    kafka.clear_faults()
    assert metadata_of(client, "t") is ErrorCode.NONE
    assert one.struck_count == 0


def test_faults_survive_a_restart(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    kafka.fail_next("Metadata", "INVALID_REQUEST", topic="t")
    kafka.restart()
    with BlockingClient(kafka.bootstrap) as client:
        assert metadata_of(client, "t") is ErrorCode.INVALID_REQUEST


def test_the_brokers_own_calls_are_never_affected(kafka: EmbeddedBroker) -> None:
    fault = kafka.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED")
    kafka.produce("t", "x")
    assert len(kafka.records("t")) == 1
    assert fault.struck_count == 0


def test_a_delayed_response_is_late_once(kafka: EmbeddedBroker, client: BlockingClient) -> None:
    kafka.create_topic("t")
    kafka.delay_next("Metadata", 200)
    started_s = time.monotonic()
    assert metadata_of(client, "t") is ErrorCode.NONE
    assert time.monotonic() - started_s >= 0.2


def test_a_dropped_request_has_no_effect_and_a_dropped_response_has(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    for handled, count in ((False, 0), (True, 1)):
        fault = kafka.drop_next("Produce", handled=handled)
        with Wire(kafka.port) as wire:
            wire.send(produce_request("t", wire.topic_id("t"), batch(b"x"), acks=1))
            assert wire.is_closed()
        assert fault.struck_count == 1
        assert len(kafka.records("t")) == count


def test_a_fault_for_a_request_without_a_response_closes_its_connection(
    kafka: EmbeddedBroker, client: BlockingClient
) -> None:
    kafka.create_topic("t")
    fault = kafka.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED")
    with Wire(kafka.port) as wire:
        wire.send(produce_request("t", wire.topic_id("t"), batch(b"x"), acks=0))
        assert wire.is_closed()
    assert fault.is_over
    assert kafka.records("t") == []
