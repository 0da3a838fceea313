"""Metadata of each command: an example, the APIs that it calls, the permissions that it needs.

Help, docs/cli.md and the hints after authorization errors use it; tests run every command and compare.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import typer

#: The attribute of a command's function that holds its name.
NAME = "command_name"


class Entry(NamedTuple):
    """A command: its example without `barnabas`, the Kafka APIs it calls, its permissions as "operation kind".

    A permission on a topic, a group or a transactional id applies to those that the arguments name.
    """

    example: str
    apis: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    hides: bool = False  #: without permission, results are left out; there is no error


_ALTER_CLUSTER = ("alter cluster",)
_DESCRIBE_CLUSTER = ("describe cluster",)

ENTRIES: Mapping[str, Entry] = {
    "serve": Entry("serve --data ./data --listen 127.0.0.1:9092"),
    "console": Entry("console --bootstrap 127.0.0.1:9092 --read-only"),
    "produce": Entry("produce orders --key-separator : --file orders.txt", ("Produce",), ("write topic",)),
    "consume": Entry(
        "consume orders --from-beginning --exit-at-end", ("Fetch", "ListOffsets"), ("read topic",)
    ),
    "metadata": Entry("metadata orders", ("Metadata",), ("describe topic",)),
    "topics list": Entry("topics list", ("Metadata",), ("describe topic",), hides=True),
    "topics create": Entry(
        "topics create orders --partitions 3 --config retention.ms=86400000",
        ("CreateTopics",),
        ("create topic",),
    ),
    "topics describe": Entry(
        "topics describe orders",
        ("Metadata", "DescribeConfigs", "ListOffsets"),
        ("describe topic", "describe-configs topic"),
    ),
    "topics partitions": Entry(
        "topics partitions --unhealthy", ("DescribeTopicPartitions",), ("describe topic",)
    ),
    "topics delete": Entry("topics delete orders --wait 60", ("DeleteTopics",), ("delete topic",)),
    "topics trash": Entry("topics trash", ("DescribeTrash",), ("describe topic",), hides=True),
    "topics undelete": Entry(
        "topics undelete orders --as orders-before",
        ("UndeleteTopic",),
        ("create topic", "delete topic", "read topic"),
    ),
    "topics purge": Entry("topics purge orders", ("PurgeTopics",), ("delete topic",)),
    "topics add-partitions": Entry(
        "topics add-partitions orders --total 6", ("CreatePartitions",), ("alter topic",)
    ),
    "records offsets": Entry("records offsets orders --time 1h", ("ListOffsets",), ("describe topic",)),
    "records epoch-ends": Entry(
        "records epoch-ends orders:0 --epoch 3", ("OffsetForLeaderEpoch",), ("describe topic",)
    ),
    "records delete": Entry("records delete orders:0=1000", ("DeleteRecords",), ("delete topic",)),
    "configs list": Entry(
        "configs list topic group", ("ListConfigResources",), ("describe-configs cluster",)
    ),
    "configs get": Entry("configs get topic orders --all", ("DescribeConfigs",), ("describe-configs topic",)),
    "configs set": Entry(
        "configs set topic orders retention.ms=86400000 cleanup.policy+=compact",
        ("IncrementalAlterConfigs",),
        ("alter-configs topic",),
    ),
    "configs delete": Entry(
        "configs delete topic orders retention.ms", ("IncrementalAlterConfigs",), ("alter-configs topic",)
    ),
    "configs replace": Entry(
        "configs replace topic orders --file orders.properties", ("AlterConfigs",), ("alter-configs topic",)
    ),
    "groups list": Entry("groups list --state Empty", ("ListGroups",), ("describe group",), hides=True),
    "groups describe": Entry(
        "groups describe billing",
        ("FindCoordinator", "ConsumerGroupDescribe", "DescribeGroups"),
        ("describe group",),
    ),
    "groups explain": Entry(
        "groups explain billing --last 3", ("FindCoordinator", "DescribeRebalances"), ("describe group",)
    ),
    "groups delete": Entry("groups delete billing", ("DeleteGroups",), ("delete group",)),
    "groups offsets": Entry(
        "groups offsets billing orders",
        ("OffsetFetch", "ListOffsets", "DescribeGroups", "ConsumerGroupDescribe"),
        ("describe group", "describe topic"),
    ),
    "groups reset-offsets": Entry(
        "groups reset-offsets billing orders --to-time 1h --dry-run",
        ("OffsetCommit",),
        ("read group", "read topic"),
    ),
    "groups delete-offsets": Entry(
        "groups delete-offsets billing orders:0", ("OffsetDelete",), ("delete group", "read topic")
    ),
    "groups remove-members": Entry(
        "groups remove-members billing --instance worker-3", ("LeaveGroup",), ("read group",)
    ),
    "transactions list": Entry(
        "transactions list --longer-than-ms 60000",
        ("ListTransactions",),
        ("describe transactional-id",),
        hides=True,
    ),
    "transactions describe": Entry(
        "transactions describe payments-1", ("DescribeTransactions",), ("describe transactional-id",)
    ),
    "transactions producers": Entry(
        "transactions producers orders:0", ("DescribeProducers",), ("read topic",)
    ),
    "transactions abort": Entry(
        "transactions abort orders:0 --start-offset 4711",
        ("DescribeProducers", "WriteTxnMarkers"),
        ("read topic", "alter cluster"),
    ),
    "transactions terminate": Entry(
        "transactions terminate payments-1",
        ("DescribeTransactions", "InitProducerId"),
        ("describe transactional-id", "write transactional-id"),
    ),
    "brokers list": Entry("brokers list --fenced", ("DescribeCluster",), hides=True),
    "brokers api-versions": Entry("brokers api-versions", ("ApiVersions",), hides=True),
    "brokers unregister": Entry("brokers unregister 3", ("UnregisterBroker",), _ALTER_CLUSTER),
    "elections": Entry("elections orders:0", ("ElectLeaders",), _ALTER_CLUSTER),
    "reassignments list": Entry("reassignments list", ("ListPartitionReassignments",), _DESCRIBE_CLUSTER),
    "reassignments start": Entry(
        "reassignments start orders:0=2,3 --wait 600", ("AlterPartitionReassignments",), _ALTER_CLUSTER
    ),
    "reassignments cancel": Entry(
        "reassignments cancel orders:0", ("AlterPartitionReassignments",), _ALTER_CLUSTER
    ),
    "log-dirs describe": Entry("log-dirs describe --broker 1", ("DescribeLogDirs",), _DESCRIBE_CLUSTER),
    "log-dirs move": Entry(
        "log-dirs move /disk2/kafka orders:0 --wait 600", ("AlterReplicaLogDirs",), _ALTER_CLUSTER
    ),
    "features list": Entry("features list", ("ApiVersions",), hides=True),
    "features set": Entry("features set metadata.version=30", ("UpdateFeatures",), _ALTER_CLUSTER),
    "quorum describe": Entry("quorum describe", ("DescribeQuorum",), _DESCRIBE_CLUSTER),
    "quorum add-voter": Entry(
        "quorum add-voter 3 AAECAwQFBgcICQoLDA0ODw CONTROLLER=host3:9093", ("AddRaftVoter",), _ALTER_CLUSTER
    ),
    "quorum remove-voter": Entry(
        "quorum remove-voter 3 AAECAwQFBgcICQoLDA0ODw", ("RemoveRaftVoter",), _ALTER_CLUSTER
    ),
    "quorum update-voter": Entry(
        "quorum update-voter 3 AAECAwQFBgcICQoLDA0ODw CONTROLLER=host3:9094",
        ("DescribeQuorum", "UpdateRaftVoter"),
        ("describe cluster", "alter cluster"),
    ),
    "acls list": Entry("acls list --topic orders", ("DescribeAcls", "DescribeAclUse"), _DESCRIBE_CLUSTER),
    "acls add": Entry(
        "acls add --principal alice --operation read --topic orders- --prefixed",
        ("CreateAcls",),
        _ALTER_CLUSTER,
    ),
    "acls remove": Entry("acls remove --principal alice", ("DeleteAcls",), _ALTER_CLUSTER),
    "users list": Entry("users list alice", ("DescribeUserScramCredentials",), _DESCRIBE_CLUSTER),
    "users add": Entry(
        "users add alice --password @password-file", ("AlterUserScramCredentials",), _ALTER_CLUSTER
    ),
    "users remove": Entry(
        "users remove alice",
        ("DescribeUserScramCredentials", "AlterUserScramCredentials"),
        ("describe cluster", "alter cluster"),
    ),
    "quotas list": Entry("quotas list user=alice", ("DescribeClientQuotas",), ("describe-configs cluster",)),
    "quotas set": Entry(
        "quotas set user=alice producer_byte_rate=1000000", ("AlterClientQuotas",), ("alter-configs cluster",)
    ),
    "quotas remove": Entry(
        "quotas remove user=alice producer_byte_rate", ("AlterClientQuotas",), ("alter-configs cluster",)
    ),
    "policy test": Entry(
        "policy test --rules policies.yaml",
        ("Metadata", "DescribeConfigs"),
        ("describe topic", "describe-configs topic"),
        hides=True,
    ),
    "audit": Entry("audit --resource 'topic/ord*' --since 1h --follow", ("Fetch",), ("read topic",)),
    "history": Entry("history topic/orders --since 41 --at 57", ("Fetch",), ("read topic",)),
    "rollback": Entry(
        "rollback topic/orders --to 41 --dry-run", ("RollbackResource",), ("alter-configs topic",)
    ),
    "export": Entry(
        "export --include 'topic/*'",
        ("Metadata", "DescribeConfigs"),
        ("describe topic", "describe-configs topic", "describe cluster", "describe-configs cluster"),
    ),
    "plan": Entry(
        "plan cluster.yaml --include 'topic/*'",
        ("Metadata", "DescribeConfigs"),
        ("describe topic", "describe-configs topic", "describe cluster", "describe-configs cluster"),
    ),
    "apply": Entry(
        "apply cluster.yaml --yes --allow-destroy",
        ("Metadata", "DescribeConfigs"),
        ("describe topic", "describe-configs topic", "describe cluster", "describe-configs cluster"),
    ),
    "drift": Entry(
        "drift cluster.yaml --watch --interval 60",
        ("Metadata", "DescribeConfigs"),
        ("describe topic", "describe-configs topic", "describe cluster", "describe-configs cluster"),
    ),
    "verify-eos produce": Entry("verify-eos produce inputs --count 10000", ("Produce",), ("write topic",)),
    "verify-eos check": Entry("verify-eos check inputs outputs --wait 60", ("Fetch",), ("read topic",)),
    "jobs scrub": Entry("jobs scrub --log-dir /disk1/kafka --report report"),
    "jobs compact": Entry("jobs compact --log-dir /disk1/kafka --dry-run"),
    "jobs usage": Entry("jobs usage --bootstrap 127.0.0.1:9092 --report report"),
    "jobs audit": Entry("jobs audit --since 30d --report ./report"),
    "jobs rekey": Entry("jobs rekey orders orders-by-key --state ./rekey"),
    "jobs archive": Entry("jobs archive ./archive --topic orders"),
    "jobs restore": Entry("jobs restore ./archive --topic orders", ("ImportSegments",), _ALTER_CLUSTER),
    "jobs translate-offsets": Entry("jobs translate-offsets ./map --group billing"),
    "spark-submit": Entry("spark-submit --master 'local[2]' application.py"),
    "pipeline run": Entry("pipeline run pipelines.yml"),
    "pipeline plan": Entry("pipeline plan pipelines.yml"),
    "pipeline status": Entry("pipeline status pipelines.yml"),
    "completion": Entry("completion bash"),
}


def explain(app: typer.Typer, prefix: str = "") -> None:
    """Set the names of the commands of `app`, and add examples and permissions to their help."""
    for command in app.registered_commands:
        assert command.callback is not None
        name = f"{prefix}{command.name}"
        function: Any = command.callback
        while function is not None:
            function.__dict__[NAME] = name
            function = getattr(function, "__wrapped__", None)
        entry = ENTRIES.get(name)
        if entry is not None and command.epilog is None:
            command.epilog = f"Example: barnabas {entry.example}" + permissions_help(entry)
    for group in app.registered_groups:
        assert group.typer_instance is not None
        explain(group.typer_instance, f"{group.name} ")


def permissions_help(entry: Entry) -> str:
    """Return the paragraph of the help about the permissions that a command needs; "" if it needs none."""
    if not entry.needs:
        return ""
    words = [need.replace(" ", " on the ", 1) for need in entry.needs]
    return f"\n\nRequired ACLs: {', '.join(words)}."
