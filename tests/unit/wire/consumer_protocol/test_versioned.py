import random

import pytest

from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.versioned import read_assignment, read_subscription, write
from support.random_structs import random_struct


def test_subscriptions_and_assignments_of_every_version_round_trip() -> None:
    rng = random.Random(415)
    for version in range(4):
        for _ in range(50):
            subscription = random_struct(ConsumerProtocolSubscription, version, rng)
            assert read_subscription(write(subscription, version)) == subscription
            assignment = random_struct(ConsumerProtocolAssignment, version, rng)
            assert read_assignment(memoryview(write(assignment, version))) == assignment


def test_the_bytes_equal_those_of_java_clients() -> None:
    sent = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")
    assert read_subscription(sent) == ConsumerProtocolSubscription(topics=["t"])
    given = bytes.fromhex("0000 00000001 0001 74 00000002 00000000 00000001 ffffffff")
    assert read_assignment(given) == ConsumerProtocolAssignment([TopicPartition("t", [0, 1])])


def test_a_newer_version_is_decoded_as_the_newest_known() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], generation_id=3, rack_id="a")
    newer = b"\0\x09" + write(subscription, 3)[2:] + b"what is added later"
    assert read_subscription(newer) == subscription


@pytest.mark.parametrize("bad", [b"", b"\0", b"\xff\xff", b"\0\0\0\0", b"\0\0\0\0\0\1"])
def test_other_bytes_are_malformed(bad: bytes) -> None:
    with pytest.raises(DecodeError):
        read_subscription(bad)
    with pytest.raises(DecodeError):
        read_assignment(bad)
