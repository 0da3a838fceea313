"""Every advertised version is served, and every other one is rejected."""

import struct

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Message
from support.acls import EVERY_ACL
from support.nodes import ADVERTISED_APIS, KAFKA_APIS
from support.wire import Wire

PRODUCE = 0

#: APIs whose first versions Apache Kafka 4 removed: key -> the removed versions.
REMOVED = {key: range(spec.versions.first) for key, spec in KAFKA_APIS.items() if spec.versions.first}

#: Minimal requests, where the defaults are invalid or have no response.
BARE = {ProduceRequest: ProduceRequest(acks=1), DescribeAclsRequest: DescribeAclsRequest(**EVERY_ACL)}


def bare(request: type[Message]) -> Message:
    return BARE.get(request) or request()


@pytest.mark.parametrize("key", KAFKA_APIS)
def test_every_version_of_a_request_has_a_response_that_decodes(kafka: EmbeddedBroker, key: int) -> None:
    spec = KAFKA_APIS[key]
    for version in range(spec.versions.first, spec.versions.last + 1):
        with Wire(kafka.port) as fresh:
            assert isinstance(fresh.ask(bare(spec.request), version), spec.response)


def test_advertised_versions_are_served_versions(wire: Wire) -> None:
    """Exceptions are Produce, advertised from version 0 for librdkafka as in Apache Kafka 4, and client telemetry,
    which nothing receives here.
    """
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    advertised = {each.api_key: (each.min_version, each.max_version) for each in wire.ask(request).api_keys}
    served = {key: tuple(spec.versions) for key, spec in ADVERTISED_APIS.items()}
    assert advertised == served | {PRODUCE: (0, served[PRODUCE][1])}


@pytest.mark.parametrize(("key", "version"), [(key, version) for key in REMOVED for version in REMOVED[key]])
def test_a_version_that_apache_kafka_4_removed_is_rejected(wire: Wire, key: int, version: int) -> None:
    wire.send_frame(struct.pack(">hhih", key, version, 7, -1) + b"\0" * 20)
    assert wire.receive_frame() == struct.pack(">iih", 6, 7, ErrorCode.UNSUPPORTED_VERSION)
    assert wire.is_closed()
