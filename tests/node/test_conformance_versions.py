"""Every version that is advertised is served, and every other one is refused."""

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

#: APIs whose first versions Apache Kafka 4 gave up: key -> the versions that are gone.
REMOVED = {key: range(spec.versions.first) for key, spec in KAFKA_APIS.items() if spec.versions.first}

#: Requests with nothing in them, where the defaults want no answer or mean nothing.
BARE = {ProduceRequest: ProduceRequest(acks=1), DescribeAclsRequest: DescribeAclsRequest(**EVERY_ACL)}


def bare(request: type[Message]) -> Message:
    return BARE.get(request) or request()


@pytest.mark.parametrize("key", KAFKA_APIS)
def test_a_request_of_every_version_has_an_answer_that_decodes(kafka: EmbeddedBroker, key: int) -> None:
    spec = KAFKA_APIS[key]
    for version in range(spec.versions.first, spec.versions.last + 1):
        with Wire(kafka.port) as fresh:
            assert isinstance(fresh.ask(bare(spec.request), version), spec.response)


def test_what_is_advertised_is_what_is_served(wire: Wire) -> None:
    """But for Produce, which librdkafka wants to see from version 0 on, as Apache Kafka 4 shows it.

    And but for client telemetry, which nothing consumes here.
    """
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    told = {each.api_key: (each.min_version, each.max_version) for each in wire.ask(request).api_keys}
    served = {key: tuple(spec.versions) for key, spec in ADVERTISED_APIS.items()}
    assert told == served | {PRODUCE: (0, served[PRODUCE][1])}


@pytest.mark.parametrize(("key", "version"), [(key, version) for key in REMOVED for version in REMOVED[key]])
def test_a_version_that_apache_kafka_4_gave_up_is_refused(wire: Wire, key: int, version: int) -> None:
    wire.send_frame(struct.pack(">hhih", key, version, 7, -1) + b"\0" * 20)
    assert wire.receive_frame() == struct.pack(">iih", 6, 7, ErrorCode.UNSUPPORTED_VERSION)
    assert wire.is_closed()
