"""`barnabas metadata`: show brokers and topics."""

from typing import Annotated, Any

import typer

from barnabas.base.ids import uuid_to_text
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json, print_table
from barnabas.client.core.metadata import Metadata, TopicInfo


@command("metadata", example="metadata orders", apis=("Metadata",), needs=("describe topic",))
def metadata(
    topic: Annotated[
        str | None,
        typer.Argument(
            help="Topic to show (default: all topics).", show_default=False, autocompletion=candidates.topics
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    names = None if topic is None else [topic]
    metadata = with_cluster(bootstrap, lambda cluster: cluster.refresh(names))
    topics = sorted(metadata.topics.values(), key=lambda info: info.name)
    if topic is not None:
        topics = [metadata.topic(topic)]
    if as_json:
        print_json(_as_json(metadata, topics))
        return
    _print_brokers(metadata)
    print()
    rows = [(info.name, len(info.partitions), info.replication_factor, _state(info)) for info in topics]
    print_table(("topic", "partitions", "replicas", "state"), rows, "topics")


def _print_brokers(metadata: Metadata) -> None:
    print(f"cluster {metadata.cluster_id}")
    rows = [
        (node.node_id, node.address, node.rack or "", "yes" if node.node_id == metadata.controller_id else "")
        for node in metadata.nodes.values()
    ]
    print_table(("broker", "address", "rack", "controller"), rows, "brokers")


def _state(topic: TopicInfo) -> str:
    if topic.error is not None:
        return topic.error.code.name
    offline_count = sum(partition.leader < 0 for partition in topic.partitions)
    under_replicated_count = sum(
        len(partition.isr) < len(partition.replicas) for partition in topic.partitions
    )
    problems = [(offline_count, "without leader"), (under_replicated_count, "under-replicated")]
    return ", ".join(f"{count} {problem}" for count, problem in problems if count) or "ok"


def _as_json(metadata: Metadata, topics: list[TopicInfo]) -> dict[str, Any]:
    brokers = [
        {"id": node.node_id, "host": node.address.host, "port": node.address.port, "rack": node.rack}
        for node in metadata.nodes.values()
    ]
    return {
        "cluster_id": metadata.cluster_id,
        "controller_id": metadata.controller_id,
        "brokers": brokers,
        "topics": [_topic_json(topic) for topic in topics],
    }


def _topic_json(topic: TopicInfo) -> dict[str, Any]:
    partitions = [
        {
            "partition": partition.partition_index,
            "leader": partition.leader,
            "replicas": list(partition.replicas),
            "isr": list(partition.isr),
        }
        for partition in topic.partitions
    ]
    return {
        "topic": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "error": None if topic.error is None else topic.error.code.name,
        "partitions": partitions,
    }
