"""Authorizers and principal builders in Python, with a real broker and real clients."""

import base64
import json
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from barnabas.client.auth.sasl import Exchange, SaslLogin
from barnabas.net.connection import ServerConnection
from barnabas.policy import (
    Action,
    AuthenticationContext,
    AuthorizableRequestContext,
    Authorizer,
    PrincipalBuilder,
)
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.admin import create, new_topic
from support.policies import policy_module
from support.sasl import ALICE, MODULE, SASL_SETTINGS, log_in
from support.tls import AUTHORITY, REQUIRED, client_of, port_of, settings_of, with_keys, write_keystore
from support.waiting import until
from support.wire import Wire

AUTHORIZER, BUILDER = "authorizer.class.name", "principal.builder.class"


# An authorizer that asks a policy service over HTTP


class PolicyService:
    """Decides like Open Policy Agent: allows groups and the names in `allowed`, and answers when `gate` is set."""

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.questions: list[dict[str, str]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                actions = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                service.questions += actions
                service.gate.wait(30)
                decisions = [
                    action["type"] == "GROUP" or action["name"] in service.allowed for action in actions
                ]
                body = json.dumps({"result": decisions}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/data/kafka/allow"

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class AsksService(Authorizer):
    """Asks the service of `policy.service.url`."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self._url = configs["policy.service.url"]

    def authorize(self, request_context: AuthorizableRequestContext, actions: Sequence[Action]) -> list[bool]:
        asked = [
            {
                "principal": request_context.principal,
                "operation": action.operation,
                "type": action.resource_type,
                "name": action.resource_name,
            }
            for action in actions
        ]
        body = json.dumps({"input": asked}).encode()
        with urllib.request.urlopen(urllib.request.Request(self._url, body), timeout=30) as response:
            decisions: list[bool] = json.load(response)["result"]
        return decisions

    def authorize_by_resource_type(
        self, request_context: AuthorizableRequestContext, operation: str, resource_type: str
    ) -> bool:
        return (operation, resource_type) == ("WRITE", "TOPIC")


@pytest.fixture
def service() -> Iterator[PolicyService]:
    running = PolicyService()
    yield running
    running.close()


def guarded(service: PolicyService, **settings: str) -> EmbeddedBroker:
    keys = {key.replace("_", "."): value for key, value in settings.items()}
    return EmbeddedBroker(
        {
            AUTHORIZER: f"{__name__}:AsksService",
            "policy.service.url": service.url,
            "barnabas.policy.timeout.ms": "30000",
            "group.initial.rebalance.delay.ms": "0",
            **keys,
        }
    )


def test_a_policy_service_decides_what_clients_may_do(service: PolicyService) -> None:
    service.allowed = {"open", "__consumer_offsets"}
    with guarded(service, barnabas_authorizer_cache_ms="0") as kafka:
        kafka.create_topic("open")
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            kafka.create_topic("closed")
        kafka.produce("open", b"1")
        assert [record.value for record in kafka.records("open")] == [b"1"]
        service.allowed.remove("open")
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            kafka.produce("open", b"2")
    assert {"principal": "User:ANONYMOUS", "operation": "WRITE", "type": "TOPIC", "name": "open"} in (
        service.questions
    )


def test_a_slow_policy_service_delays_only_those_who_wait_for_it(service: PolicyService) -> None:
    service.allowed = {"t", "u"}
    with guarded(service) as kafka, Wire(kafka.port) as waiting, Wire(kafka.port) as other:
        create(other, new_topic("t"))
        of_t = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        other.ask(of_t)  # this decision is known from now on
        service.gate.clear()
        asked_count = len(service.questions)
        request = CreateTopicsRequest(topics=[new_topic("u")])
        correlation_id = waiting.send(request)
        until(lambda: len(service.questions) > asked_count)
        assert other.ask(of_t).topics[0].error_code == ErrorCode.NONE
        service.gate.set()
        assert waiting.receive(type(request), correlation_id).topics[0].error_code == ErrorCode.NONE


def test_without_the_policy_service_everything_is_denied_and_the_broker_serves_on(
    service: PolicyService,
) -> None:
    service.allowed = {"t"}
    with guarded(service, barnabas_authorizer_cache_ms="0") as kafka, Wire(kafka.port) as wire:
        assert create(wire, new_topic("t"))["t"].error_code == ErrorCode.NONE
        service.close()
        assert create(wire, new_topic("u"))["u"].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic = MetadataRequestTopic(name="t")
        described = wire.ask(MetadataRequest(topics=[topic])).topics[0]
        assert described.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_regular_expression_of_a_consumer_matches_what_the_class_lets_it_see(
    service: PolicyService,
) -> None:
    service.allowed = {"orders.a", "orders.b", "__consumer_offsets"}
    with guarded(service, barnabas_authorizer_cache_ms="0") as kafka:
        for topic in ("orders.a", "orders.b"):
            kafka.create_topic(topic)
        service.allowed.remove("orders.b")
        with Wire(kafka.port) as wire:
            request = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_regex="orders.*",
                topic_partitions=[],
            )
            until(
                lambda: wire.ask(FindCoordinatorRequest(coordinator_keys=["g"])).coordinators[0].node_id >= 0
            )
            answer = wire.ask(request)
            while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                answer = wire.ask(request)
            assert answer.error_code == ErrorCode.NONE
            expected = wire.topic_id("orders.a")
            assert [topic.topic_id for topic in answer.assignment.topic_partitions] == [expected]


# Principal builders


class ByNetwork(PrincipalBuilder):
    """Names clients by how they connect."""

    contexts: ClassVar[list[AuthenticationContext]] = []

    def build(self, context: AuthenticationContext) -> str:
        self.contexts.append(context)
        if context.user == "bob":
            raise LookupError
        return f"Team:{context.security_protocol}-{context.user}"


DEFAULT_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

RENAMING = """
from barnabas.policy import PrincipalBuilder

class Renamed(PrincipalBuilder):
    def build(self, context):
        return f"User:renamed-{context.user}"
"""


@pytest.fixture
def renaming(tmp_path: Path) -> Iterator[str]:
    """The name of a class that renames all users."""
    with policy_module(tmp_path, RENAMING) as module:
        yield module.named("Renamed")


def principals(kafka: EmbeddedBroker, listener: str) -> set[str]:
    connections = [each for each in kafka.server.parts.connections._open if each.listener == listener]
    return {each.info.principal for each in connections if isinstance(each, ServerConnection)}


def logins(kafka: EmbeddedBroker) -> dict[str, int]:
    """The number of logins by outcome."""
    counts = kafka.server.parts.listeners.logins
    return {str(login_outcome): count for (*_, login_outcome), count in counts.items()}


@pytest.fixture
def named(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker with listeners of all kinds, whose clients a Python class names."""
    ByNetwork.contexts.clear()
    keystore = write_keystore(AUTHORITY.issue(), tmp_path / "own.pem")
    settings = {**settings_of(keystore, **REQUIRED), BUILDER: f"{__name__}:ByNetwork"}
    settings["listener.name.login.plain.sasl.jaas.config"] = (
        f'{MODULE} required user_alice="alice-secret" user_bob="bob-secret";'
    )
    settings["listener.name.login.ssl.client.auth"] = "none"
    with EmbeddedBroker(settings) as broker:
        yield broker


def test_a_class_names_clients_without_a_login(named: EmbeddedBroker) -> None:
    with client_of(named, "PLAINTEXT", tls=None) as client:
        assert client.admin.describe_cluster().nodes
        assert principals(named, "PLAINTEXT") == {"Team:PLAINTEXT-ANONYMOUS"}
    [context] = ByNetwork.contexts
    assert (context.listener, context.client_address) == ("PLAINTEXT", "127.0.0.1")


def test_a_class_names_clients_by_their_certificates(named: EmbeddedBroker) -> None:
    issued = AUTHORITY.issue(name="carol")
    with client_of(named, tls=with_keys(issued)) as client:
        assert client.admin.describe_cluster().nodes
        assert principals(named, "SSL") == {"Team:SSL-CN=carol"}
    [context] = ByNetwork.contexts
    assert context.certificate is not None
    assert b"carol" in context.certificate


def test_a_class_names_clients_that_log_in_or_refuses_them(named: EmbeddedBroker) -> None:
    with client_of(named, "LOGIN", login=ALICE) as client:
        assert client.admin.describe_cluster().nodes
        assert principals(named, "LOGIN") == {"Team:SASL_SSL-alice"}
    [context] = ByNetwork.contexts
    assert context.sasl_mechanism == "PLAIN"
    bob = SaslLogin("PLAIN", "bob", "bob-secret")
    with (
        pytest.raises(KafkaError, match="the broker has no principal for this client"),
        client_of(named, "LOGIN", login=bob) as client,
    ):
        client.admin.describe_cluster()


def test_a_client_of_an_old_version_is_named_before_its_first_request(renaming: str) -> None:
    settings = {**SASL_SETTINGS, BUILDER: renaming}
    with EmbeddedBroker(settings) as kafka, Wire(port_of(kafka, "CLIENTS")) as wire:
        assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == ErrorCode.NONE
        wire.send_frame(Exchange(ALICE).first)
        assert wire.receive_frame() == bytes(4)
        ids = [wire.send(MetadataRequest(topics=[])) for _ in range(3)]
        assert all(wire.receive(MetadataRequest, each).cluster_id for each in ids)
        assert principals(kafka, "CLIENTS") == {"User:renamed-alice"}


def test_a_client_of_an_old_version_without_a_principal_has_failed_to_log_in() -> None:
    settings = {
        **SASL_SETTINGS,
        BUILDER: f"{__name__}:ByNetwork",
        "connection.failed.authentication.delay.ms": "0",
    }
    with EmbeddedBroker(settings) as kafka, Wire(port_of(kafka, "CLIENTS")) as wire:
        assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == ErrorCode.NONE
        wire.send_frame(Exchange(SaslLogin("PLAIN", "bob", "bob-secret")).first)
        assert wire.receive_frame() == bytes(4)
        wire.send(MetadataRequest(topics=[]))
        assert wire.is_closed()
        assert logins(kafka) == {"failed": 1}


def test_a_listener_has_its_own_class_or_none(renaming: str) -> None:
    settings = {
        **SASL_SETTINGS,
        BUILDER: f"{__name__}:ByNetwork",
        f"listener.name.clients.{BUILDER}": renaming,
        f"listener.name.plaintext.{BUILDER}": DEFAULT_BUILDER,
    }
    with EmbeddedBroker(settings) as kafka:
        with Wire(port_of(kafka, "CLIENTS")) as wire:
            log_in(wire)
            assert wire.ask(MetadataRequest(topics=[])).cluster_id
            assert principals(kafka, "CLIENTS") == {"User:renamed-alice"}
        with Wire(port_of(kafka, "PLAINTEXT")) as wire:
            assert wire.ask(MetadataRequest(topics=[])).cluster_id
            assert principals(kafka, "PLAINTEXT") == {"User:ANONYMOUS"}


def test_a_name_from_a_class_is_no_login_and_may_not_create_delegation_tokens(renaming: str) -> None:
    settings = {**SASL_SETTINGS, BUILDER: renaming, "delegation.token.secret.key": "secret"}
    with EmbeddedBroker(settings) as kafka, Wire(port_of(kafka, "PLAINTEXT")) as wire:
        refused = wire.ask(CreateDelegationTokenRequest())
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert principals(kafka, "PLAINTEXT") == {"User:renamed-ANONYMOUS"}


def test_a_client_with_a_delegation_token_is_its_owner(renaming: str) -> None:
    settings = {**SASL_SETTINGS, BUILDER: renaming, "delegation.token.secret.key": "secret"}
    with EmbeddedBroker(settings) as kafka:
        port = port_of(kafka, "CLIENTS")
        with Wire(port) as wire:
            log_in(wire)
            token = wire.ask(CreateDelegationTokenRequest())
            assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "renamed-alice")
        password = base64.b64encode(token.hmac).decode()
        with Wire(port) as wire:
            log_in(wire, SaslLogin("SCRAM-SHA-256", token.token_id, password, is_delegation_token=True))
            assert wire.ask(MetadataRequest(topics=[])).cluster_id
            until(lambda: principals(kafka, "CLIENTS") == {"User:renamed-alice"})
