"""The `kafka` fixture with users, through confluent-kafka and our own client."""

from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError

USERS = {"alice": 'se"cr\\et', "b,o=b": "secret of bob"}

pytestmark = pytest.mark.kafka_users(USERS)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", USERS)
def test_users_log_in_by_each_mechanism(kafka: EmbeddedBroker, user: str, mechanism: str) -> None:
    with BlockingClient(kafka.bootstrap, login=SaslLogin(mechanism, user, USERS[user])) as client:
        assert client.admin.describe_topics() == {}


def test_other_users_cannot_log_in(kafka: EmbeddedBroker) -> None:
    with pytest.raises(KafkaError) as refused:
        BlockingClient(kafka.bootstrap, login=SaslLogin("PLAIN", "alice", "wrong"))
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    with pytest.raises(ConnectionError):
        BlockingClient(kafka.bootstrap)


def test_the_brokers_own_calls_need_no_login_and_users_survive_a_restart(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    kafka.restart()
    options: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": USERS["alice"],
    }
    producer = Producer(options)
    producer.produce("t", b"hello")
    assert producer.flush(20) == 0
    assert [record.value for record in kafka.records("t")] == [b"hello"]
