"""Implementation of `barnabas topics partitions`."""

from collections.abc import Sequence

from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.outcomes import raise_all
from barnabas.client.admin.topic_partitions import PartitionDescription, describe_topic_partitions
from barnabas.wire.errors import KafkaError

_COLUMNS = ("partition", "leader", "epoch", "replicas", "isr", "eligible", "last eligible", "offline")


def show(bootstrap: str, names: Sequence[str], *, unhealthy: bool, as_json: bool) -> None:
    """Print the partitions of these topics, or of all topics.

    :raises KafkaError: For topics that cannot be described, after the others are printed.
    """
    results = with_cluster(bootstrap, lambda cluster: describe_topic_partitions(cluster, names))
    partitions = [
        (topic, partition)
        for topic, descriptions in sorted(results.items())
        if not isinstance(descriptions, KafkaError)
        for partition in descriptions
        if not (unhealthy and _is_healthy(partition))
    ]
    if as_json:
        print_json([{"topic": topic, **partition._asdict()} for topic, partition in partitions])
    else:
        print_table(_COLUMNS, [_row(topic, partition) for topic, partition in partitions])
    raise_all(results.values())
    if not partitions:
        notice("all partitions have a leader and are fully replicated" if unhealthy else "no topics")


def _is_healthy(partition: PartitionDescription) -> bool:
    in_sync = len(partition.isr) == len(partition.replicas)
    return partition.leader >= 0 and in_sync and not partition.offline


def _row(topic: str, partition: PartitionDescription) -> tuple[object, ...]:
    nodes = (
        partition.replicas,
        partition.isr,
        partition.eligible,
        partition.last_known_eligible,
        partition.offline,
    )
    leader = partition.leader if partition.leader >= 0 else "none"
    return (
        f"{topic}-{partition.partition}",
        leader,
        partition.leader_epoch,
        *(",".join(map(str, ids)) for ids in nodes),
    )
