from barnabas.security.operations import ALL_OPERATIONS
from barnabas.wire.acls import ResourceType


def test_authorized_operations_are_the_bits_that_kafka_sends() -> None:
    assert ALL_OPERATIONS[ResourceType.TOPIC] == 3576
    assert ALL_OPERATIONS[ResourceType.CLUSTER] == 8096
