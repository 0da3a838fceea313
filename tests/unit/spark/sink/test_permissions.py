"""The permissions in docs/spark.md are sufficient, and each is necessary."""

from collections.abc import Iterator

import pytest

from barnabas.client.admin.admin import raise_errors
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.sink.errors import SinkError
from support.spark_sink import ROWS, TASKS, Sink

USER, PASSWORD = "writer", "secret"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}
LOGIN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{USER}" password="{PASSWORD}";'
    ),
    "kafka.delivery.timeout.ms": "3000",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(SETTINGS, {USER: PASSWORD}) as running:
        yield running


def bindings(sink: Sink) -> list[AclBinding]:
    """Return the permissions that docs/spark.md lists."""
    topic, prefix = (sink.topic, PatternType.LITERAL), (sink.name, PatternType.PREFIXED)
    permissions = [
        (ResourceType.TOPIC, *topic, AclOperation.WRITE),
        (ResourceType.TOPIC, *topic, AclOperation.READ),
        (ResourceType.TRANSACTIONAL_ID, *prefix, AclOperation.WRITE),
        (ResourceType.GROUP, *prefix, AclOperation.READ),
    ]
    return [
        AclBinding(kind, name, pattern, f"User:{USER}", "*", operation, AclPermission.ALLOW)
        for kind, name, pattern, operation in permissions
    ]


@pytest.fixture
def sink(broker: EmbeddedBroker) -> Sink:
    """Return a sink whose writer logs in, while tests read through the open listener."""
    [open_address] = [f"{host}:{port}" for name, host, port in broker.server.addresses if name == "PLAINTEXT"]
    found = Sink(open_address)
    found.further = {**LOGIN, "kafka.bootstrap.servers": broker.bootstrap}
    return found


def test_the_documented_permissions_are_sufficient(broker: EmbeddedBroker, sink: Sink) -> None:
    raise_errors(broker.client.admin.create_acls(bindings(sink)))
    sink.run(TASKS)
    sink.run(TASKS)
    sink.abort([sink.write(0, ["lost"], batch=1)])
    assert sink.read() == ROWS


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_permission_is_reported(broker: EmbeddedBroker, sink: Sink, missing: int) -> None:
    granted = bindings(sink)
    left_out = granted.pop(missing)
    raise_errors(broker.client.admin.create_acls(granted))
    with pytest.raises((KafkaError, SinkError), match=f"{left_out.resource_type.name}_AUTHORIZATION_FAILED"):
        sink.run(TASKS)
    assert sink.read(to_the_end=False) == []
