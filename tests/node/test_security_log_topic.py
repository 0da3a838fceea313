"""The topic of the security log, with one broker and with several."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from barnabas.base.topic_names import SECURITY_TOPIC
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker, EmbeddedCluster
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.metadata import MetadataRequest
from support.sasl import ALICE, SASL_SETTINGS
from support.waiting import until
from support.wire import Wire

#: Our own clients use the first listener.
LISTENERS = {**SASL_SETTINGS, "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0"}
ENABLED = {"barnabas.security.log.topic.enable": "true"}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture
def guarded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({**LISTENERS, **AUTHORIZER, **ENABLED}) as broker:
        yield broker


def client_of(kafka: EmbeddedBroker, login: SaslLogin) -> BlockingClient:
    port = next(port for name, _, port in kafka.server.addresses if name == "CLIENTS")
    return BlockingClient(f"127.0.0.1:{port}", login=login)


def lines(kafka: EmbeddedBroker | EmbeddedCluster) -> list[dict[str, Any]]:
    [topic] = kafka.client.admin.describe_topics([SECURITY_TOPIC]).values()
    if isinstance(topic, Exception):
        return []
    return [json.loads(record.value or b"") for record in kafka.records(SECURITY_TOPIC)]


def events(kafka: EmbeddedBroker | EmbeddedCluster) -> list[str]:
    return [line["event"] for line in lines(kafka)]


def test_logins_and_denials_are_published(guarded: EmbeddedBroker) -> None:
    with client_of(guarded, ALICE) as client, pytest.raises(KafkaError, match="AUTHORIZATION_FAILED"):
        raise_errors(client.admin.create_topics([NewTopic("t")]).values())
    with pytest.raises(KafkaError), client_of(guarded, SaslLogin("PLAIN", "alice", "wrong")) as client:
        client.admin.describe_cluster()
    until(lambda: {"login succeeded", "authorization denied", "login failed"} <= set(events(guarded)))
    by_event = {line["event"]: line for line in lines(guarded)}
    denied, failed = by_event["authorization denied"], by_event["login failed"]
    assert denied["principal"] == "User:alice"
    assert (denied["operation"], denied["resource_type"], denied["resource"]) == ("CREATE", "TOPIC", "t")
    assert (failed["user"], failed["mechanism"], failed["address"]) == ("alice", "PLAIN", "127.0.0.1")
    assert failed["broker"] == guarded.server.broker.broker_id
    assert "wrong" not in json.dumps(failed)


def test_kafkas_tools_do_not_list_the_topic_and_clients_cannot_write_to_it(guarded: EmbeddedBroker) -> None:
    with client_of(guarded, ALICE) as client:
        client.admin.describe_cluster()
        until(lambda: bool(events(guarded)))
        with Wire(guarded.port) as wire:
            assert SECURITY_TOPIC not in {
                topic.name for topic in wire.ask(MetadataRequest(topics=None)).topics
            }
        with client.producer() as producer, pytest.raises(KafkaError, match="AUTHORIZATION_FAILED"):
            producer.send_and_wait(SECURITY_TOPIC, b"forged")


def test_without_the_setting_there_is_no_topic() -> None:
    with EmbeddedBroker({**LISTENERS, **AUTHORIZER}) as kafka:
        with client_of(kafka, ALICE) as client:
            client.admin.describe_cluster()
        assert SECURITY_TOPIC not in kafka.server.broker.image.topics


def senders(cluster: EmbeddedCluster) -> set[int]:
    return {line["broker"] for line in lines(cluster) if line["event"] == "login succeeded"}


def log_in_to_each(brokers: Iterable[EmbeddedBroker]) -> None:
    for broker in brokers:
        with client_of(broker, ALICE) as client:
            client.admin.describe_cluster()


def test_all_brokers_publish_to_one_leader_and_continue_with_the_next() -> None:
    with EmbeddedCluster(3, {**LISTENERS, **AUTHORIZER, **ENABLED}) as cluster:
        log_in_to_each(cluster.brokers.values())
        until(lambda: senders(cluster) == {1, 2, 3})
        leader = cluster.leader(SECURITY_TOPIC)
        assert leader is not None
        cluster.kill(leader)
        before_count = len(lines(cluster))
        log_in_to_each(broker for node_id, broker in cluster.brokers.items() if node_id != leader)
        until(lambda: len({line["broker"] for line in lines(cluster)[before_count:]}) == 2)
