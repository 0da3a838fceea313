"""A broker with some of everything that operators look at."""

import gzip
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.quotas import ClientQuotaAlteration
from barnabas.client.admin.scram import Upsertion
from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism

#: Pages of the console that show the sample data, by the names of their screenshots.
PAGES = {
    "overview": "/",
    "status": "/status",
    "topics": "/topics",
    "topic": "/topics/shop.orders",
    "topic-configs": "/topics/shop.orders/configs",
    "topic-groups": "/topics/shop.orders/groups",
    "topic-acls": "/acls?topic=shop.orders",
    "topic-delete": "/topics/shop.orders/delete",
    "deleted-topics": "/trash",
    "search": "/topics/shop.orders/messages?value=COFFEE",
    "messages": "/topics/shop.orders/messages",
    "groups": "/groups",
    "group": "/groups/shipping",
    "group-reset": "/groups/billing",
    "brokers": "/brokers",
    "broker-configs": "/brokers/1?source=STATIC_BROKER_CONFIG",
    "quorum": "/quorum",
    "log-directories": "/log-dirs",
    "reassignments": "/reassignments",
    "acls": "/acls",
    "users": "/users",
    "quotas": "/quotas",
    "audit": "/audit",
    "history": "/history/topic/shop.orders",
    "policies": "/policies",
    "plan": "/plan",
    "new-topic": "/new-topic",
    "produce": "/topics/shop.orders/produce",
}
#: Users: a superuser, one with READ on orders, and one without permissions.
USERS = {"admin": "admin-secret", "alice": "alice-secret", "nobody": "nobody-secret"}
GROUP = "billing"
LIVE_GROUP = "shipping"
DELETED = "shop.returns"
ORDERS, PARTITIONS, ORDERS_COUNT = "shop.orders", 6, 300

_POLICIES = r"""
topics:
  - name: '[a-z][a-z0-9-]*(\.[a-z0-9-]+)+'
    partitions: {min: 1, max: 12}
    configs:
      retention.ms: {max: 604800000}
    because: see the platform handbook
  - prefix: shop.payments
    protected: [delete]
acls:
  - forbid: {principal: 'User:*', operation: write}
    because: writers have names
"""
_TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    ORDERS: (PARTITIONS, {"retention.ms": "86400000", "compression.type": "zstd"}),
    "shop.payments": (3, {"min.insync.replicas": "1"}),
    "shop.customers": (2, {"cleanup.policy": "compact"}),
    "web.clicks": (12, {"segment.bytes": "1048576"}),
    "web.images": (1, {}),
    "sensors.temperature": (4, {"retention.ms": "3600000"}),
}


def sample_settings(home: Path) -> dict[str, str]:
    """Return the settings of a broker with logins, ACLs, policies, an audit and two log directories under `home`."""
    for name in ("disk-1", "disk-2"):
        (home / name).mkdir(parents=True, exist_ok=True)
    rules = home / "policies.yaml"
    rules.write_text(_POLICIES)
    return {
        "log.dirs": f"{home / 'disk-1'},{home / 'disk-2'}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "barnabas.audit.enable": "true",
        "barnabas.policy.file": str(rules),
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
    }


@contextmanager
def sample_cluster(home: Path, settings: Mapping[str, str] | None = None) -> Iterator[EmbeddedBroker]:
    """Run the broker with data until the block ends; a consumer stays in the group `shipping`."""
    with (
        EmbeddedBroker({**sample_settings(home), **(settings or {})}, USERS) as broker,
        filled(broker.client, open_address(broker)),
    ):
        yield broker


@contextmanager
def filled(client: BlockingClient, address: str) -> Iterator[None]:
    """Fill a cluster of any Kafka; `address` needs no login. A consumer stays until the block ends."""
    topics = [NewTopic(name, partitions, configs=configs) for name, (partitions, configs) in _TOPICS.items()]
    raise_errors(client.admin.create_topics(topics).values())
    _delete_one(client)
    _produce(client)
    _produce_in_transactions(address)
    committed = {TopicPartition(ORDERS, index): 5 * index for index in range(PARTITIONS)}
    raise_errors(client.groups.commit_offsets(GROUP, committed).values())
    _administer(client)
    consumer = _member(address)
    try:
        yield
    finally:
        consumer.close()


def _delete_one(client: BlockingClient) -> None:
    """Delete a topic, which stays in the trash where the cluster has one."""
    raise_errors(client.admin.create_topics([NewTopic(DELETED, 3)]).values())
    with client.producer() as producer:
        for number in range(100):
            producer.send(DELETED, f"return {number}".encode())
        producer.flush()
    raise_errors(client.admin.delete_topics([DELETED]).values())


def _produce(client: BlockingClient) -> None:
    rng = random.Random(7)
    with client.producer() as producer:
        for number in range(ORDERS_COUNT):
            order = {"id": number, "item": rng.choice(["coffee", "tea", "cake"]), "price": number % 17}
            headers = (("trace", rng.randbytes(4).hex().encode()), ("kind", b"order"))
            producer.send(
                ORDERS,
                json.dumps(order).encode(),
                f"table {number % 9}".encode(),
                partition=number % PARTITIONS,
                headers=headers,
            )
        for number in range(40):
            producer.send("web.clicks", f"GET /page/{number} 200".encode())
            producer.send("web.images", gzip.compress(rng.randbytes(3_000)), f"image-{number}".encode())
            producer.send("sensors.temperature", str(20 + number % 5).encode(), b"\x00\x00\x00\x2a")
        producer.send("shop.customers", None, b"customer-1")
        producer.flush()


def open_address(broker: EmbeddedBroker) -> str:
    """Return the listener that needs no login."""
    [port] = [port for name, _, port in broker.server.addresses if name == "PLAINTEXT"]
    return f"127.0.0.1:{port}"


def _produce_in_transactions(address: str) -> None:
    settings = {"bootstrap.servers": address, "transactional.id": "payments-1"}
    producer = Producer(settings)
    producer.init_transactions(10)
    for commit in (True, False):
        producer.begin_transaction()
        for number in range(10):
            producer.produce("shop.payments", json.dumps({"paid": number}).encode())
        if commit:
            producer.commit_transaction(10)
        else:
            producer.flush(10)
            producer.abort_transaction(10)


def _administer(client: BlockingClient) -> None:
    admin = client.admin
    bindings = [
        _allowed("User:alice", ResourceType.TOPIC, "shop.", PatternType.PREFIXED, operation)
        for operation in (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    ]
    bindings.append(
        _allowed("User:alice", ResourceType.GROUP, GROUP, PatternType.LITERAL, AclOperation.DESCRIBE)
    )
    raise_errors(admin.create_acls(bindings))
    upsertions = [
        Upsertion(name, ScramMechanism.SCRAM_SHA_256, f"{name}-secret") for name in ("carol", "dave")
    ]
    raise_errors(admin.alter_user_scram_credentials(upsertions).values())
    quotas = [
        ClientQuotaAlteration(
            (("user", "carol"),), {"producer_byte_rate": 1_048_576.0, "request_percentage": 50.0}
        ),
        ClientQuotaAlteration((("client-id", None),), {"consumer_byte_rate": 10_485_760.0}),
    ]
    raise_errors(admin.alter_client_quotas(quotas).values())
    for retention in ("43200000", "172800000"):
        edit = AlterConfigOp("retention.ms", OpType.SET, retention)
        raise_errors(admin.alter_configs({Resource(ResourceKind.TOPIC, ORDERS): [edit]}).values())
    raise_errors(
        admin.alter_configs(
            {Resource(ResourceKind.BROKER, ""): [AlterConfigOp("log.cleaner.threads", OpType.SET, "1")]}
        ).values()
    )


def _allowed(
    principal: str, kind: ResourceType, name: str, pattern: PatternType, operation: AclOperation
) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, "*", operation, AclPermission.ALLOW)


def _member(address: str) -> Consumer:
    """Start a consumer that has read a few records and stays."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": LIVE_GROUP,
            "client.id": "packer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([ORDERS])
    consumer.consume(100, 10)
    consumer.commit(asynchronous=False)
    return consumer
