"""Single manual changes on a cluster, and the drift that `barnabas drift` reports for each."""

import json
from typing import Any, TypeAlias

from typer.testing import Result

#: Makes an exported state exhaustive.
PRUNED = "prune: [topics, acls, quotas, users, groups, brokers, client_metrics, configs]\n"

#: Resource and key.
ResourceKey: TypeAlias = tuple[str, str]

#: Commands of `barnabas`, the drifted resource and key, the declared and the live value.
SINGLE_CHANGES: list[tuple[str, ResourceKey, tuple[Any, Any]]] = [
    ("topics create extra -p 2", ("topic/extra", "partitions"), (None, 2)),
    ("topics delete plain", ("topic/plain", "partitions"), (2, None)),
    ("configs set topic orders retention.ms=7", ("topic/orders", "retention.ms"), ("86400000", "7")),
    ("configs set topic plain segment.ms=7", ("topic/plain", "segment.ms"), (None, "7")),
    ("configs delete topic orders cleanup.policy", ("topic/orders", "cleanup.policy"), ("compact,delete", None)),
    ("configs set broker default log.retention.ms=7", ("broker/", "log.retention.ms"), ("172800000", "7")),
    ("configs set broker 1 log.cleaner.threads=3", ("broker/1", "log.cleaner.threads"), ("2", "3")),
    ("configs set group billing consumer.session.timeout.ms=49000",
     ("group/billing", "consumer.session.timeout.ms"), ("50000", "49000")),
    ("configs delete client-metrics lag interval.ms", ("client-metrics/lag", "interval.ms"), ("10000", None)),
    ("acls add --principal eve --operation read --topic plain",
     ("topic/plain", "acl User:eve ALLOW READ from *"), (None, True)),
    ("acls remove --principal bob", ("group/team-*", "acl User:bob DENY READ from 10.0.0.1"), (True, None)),
    ("quotas set user=alice producer_byte_rate=7", ("quota/user=alice", "producer_byte_rate"), (1048576.0, 7.0)),
    ("quotas remove ip=127.0.0.9", ("quota/ip=127.0.0.9", "connection_creation_rate"), (100.0, None)),
    ("users add eve --password x -m SCRAM-SHA-256", ("user/eve", "SCRAM-SHA-256"), (None, {"iterations": 4096})),
    ("users remove alice", ("user/alice", "SCRAM-SHA-256"), ({"iterations": 8192}, None)),
]  # fmt: skip


def drifted(result: Result) -> dict[ResourceKey, tuple[Any, Any]]:
    """Return the drift that `barnabas drift --json` reported, and check its exit code."""
    found = json.loads(result.stdout)["differences"]
    assert result.exit_code == (2 if found else 0), result.output
    return {(each["resource"], each["key"]): (each["declared"], each["found"]) for each in found}
