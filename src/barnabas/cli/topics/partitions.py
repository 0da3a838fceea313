"""`barnabas topics partitions` and `add-partitions`."""

from typing import Annotated

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin, with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, ValidateOnly
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.topics.options import Names
from barnabas.cli.topics.results import print_results
from barnabas.client.admin.topic_partitions import PartitionDescription, describe_topic_partitions
from barnabas.wire.errors import KafkaError

_COLUMNS = ("partition", "leader", "epoch", "replicas", "isr", "eligible", "last eligible", "offline")


@command(
    "add-partitions",
    example="topics add-partitions orders --total 6",
    apis=("CreatePartitions",),
    needs=("alter topic",),
)
def add_partitions(
    names: Names,
    total: Annotated[
        int,
        typer.Option(
            "--total", min=1, help="Total number of partitions of each topic afterwards.", show_default=False
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    validate_only: ValidateOnly = False,
    as_json: Json = False,
) -> None:
    """Add partitions to topics, up to a total number."""
    totals = dict.fromkeys(names, total)
    results = with_admin(
        bootstrap, lambda admin: admin.create_partitions(totals, validate_only=validate_only)
    )
    status = "could be extended" if validate_only else "extended"
    print_results(results, f"{status} to {total} partitions", as_json=as_json)


@command(
    "partitions",
    example="topics partitions --unhealthy",
    apis=("DescribeTopicPartitions",),
    needs=("describe topic",),
)
def show_partitions(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]...",
            help="Topics to show (default: all).",
            show_default=False,
            autocompletion=candidates.topics,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    unhealthy: Annotated[
        bool,
        typer.Option("--unhealthy", help="Only partitions that are offline or under-replicated."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show leaders and replicas of partitions: in-sync, eligible (ELR, KIP-966) and offline replicas."""
    results = with_cluster(bootstrap, lambda cluster: describe_topic_partitions(cluster, names or []))
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
