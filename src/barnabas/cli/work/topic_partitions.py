"""What `barnabas topics partitions` does."""

from collections.abc import Sequence

from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.outcomes import raise_all
from barnabas.client.admin.topic_partitions import PartitionDescription, describe_topic_partitions
from barnabas.wire.errors import KafkaError

_COLUMNS = ("partition", "leader", "epoch", "replicas", "isr", "eligible", "last eligible", "offline")


def show(bootstrap: str, names: Sequence[str], *, unhealthy: bool, as_json: bool) -> None:
    """Print the partitions of those topics, or of all.

    :raises KafkaError: For topics that cannot be described, when the others are printed.
    """
    outcomes = with_cluster(bootstrap, lambda cluster: describe_topic_partitions(cluster, names))
    found = [
        (topic, each)
        for topic, partitions in sorted(outcomes.items())
        if not isinstance(partitions, KafkaError)
        for each in partitions
        if not (unhealthy and _is_healthy(each))
    ]
    if as_json:
        print_json([{"topic": topic, **each._asdict()} for topic, each in found])
    else:
        print_table(_COLUMNS, [_row(topic, each) for topic, each in found])
    raise_all(outcomes.values())
    if not found:
        notice("every partition has a leader and all of its replicas" if unhealthy else "no topics yet")


def _is_healthy(each: PartitionDescription) -> bool:
    return each.leader >= 0 and len(each.isr) == len(each.replicas) and not each.offline


def _row(topic: str, each: PartitionDescription) -> tuple[object, ...]:
    nodes = (each.replicas, each.isr, each.eligible, each.last_known_eligible, each.offline)
    leader = each.leader if each.leader >= 0 else "none"
    return (
        f"{topic}-{each.partition}",
        leader,
        each.leader_epoch,
        *(",".join(map(str, ids)) for ids in nodes),
    )
