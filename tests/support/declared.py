"""A cluster, of any Kafka, with some of everything that can be declared, created over the protocol."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from barnabas.base.clock import SystemClock
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.quotas import ClientQuotaAlteration
from barnabas.client.admin.scram import Upsertion
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import ConnectionLost
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.declared.apply import ChangeResult, apply_plan
from barnabas.declared.live import whole_state
from barnabas.declared.plan import Plan, PlanRequest, make_plan
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import PRUNABLE, ClusterState
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.schema import Message
from barnabas.wire.scram import ScramMechanism

SECRETS = Secrets({"WORD": "a word"}, Path())

#: A broker with an authorizer on which everything is allowed.
SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

TOPICS = [
    NewTopic("orders", 3, 1, {"retention.ms": "86400000", "cleanup.policy": "compact,delete"}),
    NewTopic("clicks", 1, 1, {"min.cleanable.dirty.ratio": "0.25"}),
    NewTopic("plain", 2, 1),
]
ACLS = [
    AclBinding(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", operation, AclPermission.ALLOW
    )
    for operation in (AclOperation.READ, AclOperation.WRITE)
] + [
    AclBinding(
        ResourceType.GROUP,
        "team-",
        PatternType.PREFIXED,
        "User:bob",
        "10.0.0.1",
        AclOperation.READ,
        AclPermission.DENY,
    ),
    AclBinding(
        ResourceType.CLUSTER,
        "kafka-cluster",
        PatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.ALTER,
        AclPermission.ALLOW,
    ),
]
QUOTAS = [
    ClientQuotaAlteration((("user", "alice"),), {"producer_byte_rate": 1048576.0}),
    ClientQuotaAlteration((("client-id", None), ("user", "bob, the second")), {"request_percentage": 12.5}),
    ClientQuotaAlteration((("ip", "127.0.0.9"),), {"connection_creation_rate": 100.0}),
]
USERS = [
    Upsertion("alice", ScramMechanism.SCRAM_SHA_256, "alice-secret", 8192),
    Upsertion("bob", ScramMechanism.SCRAM_SHA_512, "bob-secret"),
]


def another_state(orders_partitions: int) -> str:
    """Build a declared state that keeps little of what `enriched` creates, and adds to it; `orders` had three
    partitions.
    """
    return f"""
prune: [topics, acls, users, configs]
topics:
  orders: {{partitions: {orders_partitions}, configs: {{retention.ms: 100000000, cleanup.policy: compact}}}}
  fresh: {{partitions: 1, configs: {{segment.ms: 3600000}}}}
acls: [{{principal: "User:carol", resource_type: topic, resource_name: orders, operations: [read]}}]
quotas: [{{entity: {{user: carol}}, values: {{consumer_byte_rate: 5}}}}]
users: {{carol: {{SCRAM-SHA-256: {{password: {{env: WORD}}}}, SCRAM-SHA-512: {{password: {{env: WORD}}}}}}}}
groups: {{billing: {{configs: {{consumer.session.timeout.ms: 47000}}}}}}
"""


def enriched(bootstrap: str) -> None:
    """Create all resources in the cluster."""

    async def work() -> None:
        async with ClusterClient(bootstrap) as cluster:
            await _enrich(Admin(cluster))

    asyncio.run(work())


async def _enrich(admin: Admin) -> None:
    own = str(min(admin.cluster.metadata.nodes))
    configs = {
        Resource(ResourceKind.BROKER, ""): [("log.retention.ms", "172800000")],
        Resource(ResourceKind.BROKER, own): [("log.cleaner.threads", "2")],
        Resource(ResourceKind.GROUP, "billing"): [("consumer.session.timeout.ms", "50000")],
        Resource(ResourceKind.CLIENT_METRICS, "lag"): [
            ("interval.ms", "10000"),
            ("metrics", "org.apache.kafka.a,b"),
        ],
    }
    edits = {
        resource: [AlterConfigOp(key, OpType.SET, value) for key, value in pairs]
        for resource, pairs in configs.items()
    }
    raise_errors((await admin.create_topics(TOPICS)).values())
    raise_errors((await admin.alter_configs(edits)).values())
    raise_errors(await admin.create_acls(ACLS))
    raise_errors((await admin.alter_client_quotas(QUOTAS)).values())
    raise_errors((await admin.alter_user_scram_credentials(USERS)).values())


class LostConnection(ClusterClient):
    """Loses the connection at the n-th request of an apply, before it is sent or after."""

    def __init__(self, bootstrap: str, at: int, *, is_delivered: bool) -> None:
        super().__init__(bootstrap)
        self._left, self._is_delivered = at, is_delivered

    async def send(self, request: Message, *args: Any, **kwargs: Any) -> Any:
        is_order = type(request).__name__.startswith(("Create", "Delete", "Alter", "IncrementalAlter"))
        if is_order and not getattr(request, "validate_only", False):
            self._left -= 1
            if self._left <= 0:
                if self._is_delivered:
                    await super().send(request, *args, **kwargs)
                raise ConnectionLost(self.bootstrap[0], "cut")
        return await super().send(request, *args, **kwargs)


async def grown(admin: Admin, declared: ClusterState) -> PlanRequest:
    """Return the state with at least the existing numbers of partitions, which cannot shrink. Topics it omits are
    deleted.
    """
    live = await whole_state(admin)
    topics = {
        name: replace(topic, partitions=max(topic.partitions or 1, there.partitions or 1))
        if (there := live.topics.get(name))
        else topic
        for name, topic in declared.topics.items()
    }
    return PlanRequest(replace(declared, topics=topics, prune=frozenset(PRUNABLE)), SECRETS)


async def applied(admin: Admin, plan_request: PlanRequest) -> tuple[Plan, list[ChangeResult]]:
    plan = await make_plan(admin, plan_request, SystemClock())
    return plan, await apply_plan(admin, plan, plan_request)
