"""Implementation of `barnabas topics`."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.outcomes import raise_all
from barnabas.cli.work.waiting import until_done
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import (
    BROKER_DEFAULT,
    ConfigEntry,
    CreatedTopic,
    NewTopic,
)
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.describe import ConfigSource
from barnabas.wire.errors import ErrorCode, KafkaError

_PARTITION_COLUMNS = ("partition", "leader", "replicas", "isr", "earliest", "latest")


class Description(NamedTuple):
    """A topic, the configs set for it, and the offsets of its partitions."""

    topic: TopicInfo
    configs: list[ConfigEntry]
    offsets: Mapping[tuple[int, OffsetSpec], int | None]


def show_list(bootstrap: str, *, internal: bool, as_json: bool) -> None:
    """Print all topics."""
    described = with_admin(bootstrap, lambda admin: admin.describe_topics())
    topics = [
        topic
        for topic in described.values()
        if isinstance(topic, TopicInfo) and (internal or not topic.is_internal)
    ]
    if as_json:
        print_json([_summary(topic) for topic in topics])
        return
    rows = [(topic.name, len(topic.partitions), replication_factor(topic)) for topic in topics]
    print_table(("topic", "partitions", "replicas"), rows)
    if not topics:
        notice("no topics; 'barnabas topics create NAME' creates one")


def new_topics(
    names: Collection[str],
    partitions: int | None,
    replication_factor: int | None,
    configs: Mapping[str, str | None],
) -> list[NewTopic]:
    """Return the topics to create, which differ only in their names."""
    return [
        NewTopic(name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, configs)
        for name in names
    ]


def create(
    bootstrap: str,
    topics: Collection[NewTopic],
    *,
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Create topics, and print the results."""
    results = with_admin(bootstrap, lambda admin: admin.create_topics(topics, validate_only=validate_only))
    tolerated = {ErrorCode.TOPIC_ALREADY_EXISTS} if if_not_exists else set()
    status = "could be created" if validate_only else "created"
    _print_results(results, status, tolerated, as_json=as_json)


def delete(
    bootstrap: str, names: Collection[str], *, if_exists: bool, wait_s: float | None, as_json: bool
) -> None:
    """Delete topics, wait up to `wait_s` until brokers no longer report them, and print the results."""

    async def work(admin: Admin) -> Mapping[str, KafkaError | None]:
        errors = await admin.delete_topics(names)
        deleted = {name for name, error in errors.items() if error is None}

        async def remaining() -> int:
            described = await admin.describe_topics(deleted)
            return sum(isinstance(topic, TopicInfo) for topic in described.values())

        if wait_s is not None:
            await until_done(admin.cluster, remaining, wait_s, "deletion of topics")
        return errors

    results = with_admin(bootstrap, work)
    tolerated = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if if_exists else set()
    _print_results(results, "deleted", tolerated, as_json=as_json)


def add_partitions(
    bootstrap: str, names: Collection[str], total: int, *, validate_only: bool, as_json: bool
) -> None:
    """Add partitions up to `total`, and print the results."""
    totals = dict.fromkeys(names, total)
    results = with_admin(
        bootstrap, lambda admin: admin.create_partitions(totals, validate_only=validate_only)
    )
    status = (
        f"could be extended to {total} partitions" if validate_only else f"extended to {total} partitions"
    )
    _print_results(results, status, set(), as_json=as_json)


def describe(bootstrap: str, names: Collection[str], *, as_json: bool) -> None:
    """Print partitions, offsets and configs of topics, then raise the errors of other topics."""
    results = with_admin(bootstrap, lambda admin: _describe(admin, names))
    descriptions = [result for result in results if isinstance(result, Description)]
    if as_json:
        print_json([_description_json(description) for description in descriptions])
    for description in descriptions if not as_json else ():
        _print_description(description)
    raise_all(results)


def replication_factor(topic: TopicInfo) -> int:
    """Return the largest number of replicas among the partitions."""
    return max((len(partition.replicas) for partition in topic.partitions), default=0)


def _print_results(
    results: Mapping[str, CreatedTopic | KafkaError | None],
    status: str,
    tolerated: set[ErrorCode],
    *,
    as_json: bool,
) -> None:
    """Print the successful results, then raise the errors that are not tolerated."""
    errors = {name: result for name, result in results.items() if isinstance(result, KafkaError)}
    if as_json:
        print_json([_result_json(name, result) for name, result in results.items()])
    else:
        for name in results:
            if name not in errors:
                print(f"{name}: {status}")
    raise_all(_with_topic(name, error) for name, error in errors.items() if error.code not in tolerated)


def _with_topic(name: str, error: KafkaError) -> KafkaError:
    return (
        error if f"'{name}'" in error.message else KafkaError(error.code, f"topic '{name}': {error.message}")
    )


def _result_json(name: str, result: CreatedTopic | KafkaError | None) -> dict[str, Any]:
    if isinstance(result, KafkaError):
        return {"topic": name, "error": result.code.name, "message": result.message}
    if result is None:
        return {"topic": name, "error": None}
    counts = {"partitions": result.partitions, "replication_factor": result.replication_factor}
    return {"topic": name, "error": None, "topic_id": uuid_to_text(result.topic_id), **counts}


def _summary(topic: TopicInfo) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": replication_factor(topic),
    }


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
    return {**_summary(topic), "partitions": partitions, "configs": configs}


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
