"""`barnabas topics describe`."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import print_json, print_table
from barnabas.cli.topics.options import Names
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import ConfigEntry
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.wire.errors import KafkaError

_PARTITION_COLUMNS = ("partition", "leader", "replicas", "isr", "earliest", "latest")


class Description(NamedTuple):
    """A topic, the configs set for it, and the offsets of its partitions."""

    topic: TopicInfo
    configs: list[ConfigEntry]
    offsets: Mapping[tuple[int, OffsetSpec], int | None]


@command(
    "describe",
    example="topics describe orders",
    apis=("Metadata", "DescribeConfigs", "ListOffsets"),
    needs=("describe topic", "describe-configs topic"),
)
def describe_topics(names: Names, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show partitions, their offsets, and the configs that are set for the topic."""
    results = with_admin(bootstrap, lambda admin: _describe(admin, names))
    descriptions = [result for result in results if isinstance(result, Description)]
    if as_json:
        print_json([_description_json(description) for description in descriptions])
    for description in descriptions if not as_json else ():
        _print_description(description)
    raise_all(results)


async def _describe(admin: Admin, names: Collection[str]) -> list[Description | KafkaError]:
    topics = await admin.describe_topics(names)
    existing = [topic for topic in topics.values() if isinstance(topic, TopicInfo)]
    configs = await admin.describe_configs(Resource(ResourceKind.TOPIC, topic.name) for topic in existing)
    results: list[Description | KafkaError] = []
    for topic in existing:
        entries = configs[Resource(ResourceKind.TOPIC, topic.name)]
        if isinstance(entries, KafkaError):
            results.append(entries)
        else:
            results.append(Description(topic, _topic_configs(entries), await _offsets(admin, topic)))
    return results + [topic for topic in topics.values() if isinstance(topic, KafkaError)]


def _topic_configs(configs: list[ConfigEntry]) -> list[ConfigEntry]:
    """Return the configs that are set for the topic itself."""
    return sorted(config for config in configs if config.source is ConfigSource.DYNAMIC_TOPIC_CONFIG)


async def _offsets(admin: Admin, topic: TopicInfo) -> dict[tuple[int, OffsetSpec], int | None]:
    offsets: dict[tuple[int, OffsetSpec], int | None] = {}
    online = [partition.partition_index for partition in topic.partitions if partition.leader >= 0]
    for spec in (EARLIEST, LATEST):
        listed = await admin.list_offsets({TopicPartition(topic.name, index): spec for index in online})
        for tp, result in listed.items():
            offsets[tp.partition, spec] = result.offset if isinstance(result, ListedOffset) else None
    return offsets


def topic_json(topic: TopicInfo) -> dict[str, Any]:
    """Return the fields of a topic that `topics list` and `topics describe` print."""
    return {
        "topic": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
    }


def _description_json(description: Description) -> dict[str, Any]:
    topic = description.topic
    partitions = [
        {
            "partition": partition.partition_index,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "replicas": list(partition.replicas),
            "isr": list(partition.isr),
            "earliest": description.offsets.get((partition.partition_index, EARLIEST)),
            "latest": description.offsets.get((partition.partition_index, LATEST)),
        }
        for partition in topic.partitions
    ]
    configs = {config.name: config.value for config in description.configs}
    return {**topic_json(topic), "partitions": partitions, "configs": configs}


def _print_description(description: Description) -> None:
    topic = description.topic
    settings = " ".join(f"{config.name}={config.value}" for config in description.configs)
    print(f"{topic.name}  id {uuid_to_text(topic.topic_id)}  {settings or 'all configs at their defaults'}")
    rows = [
        (
            partition.partition_index,
            partition.leader if partition.leader >= 0 else "none",
            ",".join(map(str, partition.replicas)),
            ",".join(map(str, partition.isr)),
            _format_offset(description.offsets.get((partition.partition_index, EARLIEST))),
            _format_offset(description.offsets.get((partition.partition_index, LATEST))),
        )
        for partition in topic.partitions
    ]
    print_table(_PARTITION_COLUMNS, rows)


def _format_offset(offset: int | None) -> int | str:
    return "?" if offset is None else offset
