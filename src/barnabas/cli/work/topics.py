"""What `barnabas topics` does."""

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
    ConfigSource,
    CreatedTopic,
    NewTopic,
)
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import ErrorCode, KafkaError

_PARTITION_COLUMNS = ("partition", "leader", "replicas", "isr", "earliest", "latest")


class Description(NamedTuple):
    """Everything that is shown of one topic."""

    topic: TopicInfo
    configs: list[ConfigEntry]
    offsets: Mapping[tuple[int, OffsetSpec], int | None]


def show_list(bootstrap: str, *, internal: bool, as_json: bool) -> None:
    """Print all topics."""
    found = with_admin(bootstrap, lambda admin: admin.describe_topics())
    topics = [
        topic
        for topic in found.values()
        if isinstance(topic, TopicInfo) and (internal or not topic.is_internal)
    ]
    if as_json:
        print_json([_summary(topic) for topic in topics])
        return
    rows = [(each.name, len(each.partitions), replication_factor(each)) for each in topics]
    print_table(("topic", "partitions", "replicas"), rows)
    if not topics:
        notice("no topics yet: 'barnabas topics create NAME' makes one")


def new_topics(
    names: Collection[str],
    partitions: int | None,
    replication_factor: int | None,
    configs: Mapping[str, str | None],
) -> list[NewTopic]:
    """Topics to create, all alike but for their names."""
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
    """Create topics and print what became of each."""
    outcomes = with_admin(bootstrap, lambda admin: admin.create_topics(topics, validate_only=validate_only))
    content = {ErrorCode.TOPIC_ALREADY_EXISTS} if if_not_exists else set()
    verb = "could be created" if validate_only else "created"
    _print_outcomes(outcomes, verb, content, as_json=as_json)


def delete(
    bootstrap: str, names: Collection[str], *, if_exists: bool, wait_s: float | None, as_json: bool
) -> None:
    """Delete topics, stay until brokers know them no longer if that is wished, and print what became of each."""

    async def work(admin: Admin) -> Mapping[str, KafkaError | None]:
        outcomes = await admin.delete_topics(names)
        gone = {name for name, error in outcomes.items() if error is None}

        async def left() -> int:
            found = await admin.describe_topics(gone)
            return sum(isinstance(each, TopicInfo) for each in found.values())

        if wait_s is not None:
            await until_done(admin.cluster, left, wait_s, "deletion of topics")
        return outcomes

    outcomes = with_admin(bootstrap, work)
    content = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if if_exists else set()
    _print_outcomes(outcomes, "deleted", content, as_json=as_json)


def grow(bootstrap: str, names: Collection[str], total: int, *, validate_only: bool, as_json: bool) -> None:
    """Add partitions up to `total` and print what became of each topic."""
    totals = dict.fromkeys(names, total)
    outcomes = with_admin(
        bootstrap, lambda admin: admin.create_partitions(totals, validate_only=validate_only)
    )
    verb = f"could grow to {total} partitions" if validate_only else f"grows to {total} partitions"
    _print_outcomes(outcomes, verb, set(), as_json=as_json)


def describe(bootstrap: str, names: Collection[str], *, as_json: bool) -> None:
    """Print partitions, offsets and settings of topics, then raise what stood in the way of others."""
    outcomes = with_admin(bootstrap, lambda admin: _described(admin, names))
    descriptions = [each for each in outcomes if isinstance(each, Description)]
    if as_json:
        print_json([_description_json(each) for each in descriptions])
    for each in descriptions if not as_json else ():
        _print_description(each)
    raise_all(outcomes)


def replication_factor(topic: TopicInfo) -> int:
    """How many replicas its partitions have."""
    return max((len(partition.replicas) for partition in topic.partitions), default=0)


def _print_outcomes(
    outcomes: Mapping[str, CreatedTopic | KafkaError | None],
    verb: str,
    content: set[ErrorCode],
    *,
    as_json: bool,
) -> None:
    """Print the successes, then raise the errors that the user is not content with."""
    errors = {name: each for name, each in outcomes.items() if isinstance(each, KafkaError)}
    if as_json:
        print_json([_outcome_json(name, outcome) for name, outcome in outcomes.items()])
    else:
        for name in outcomes:
            if name not in errors:
                print(f"{name}: {verb}")
    raise_all(_named(name, error) for name, error in errors.items() if error.code not in content)


def _named(name: str, error: KafkaError) -> KafkaError:
    return (
        error if f"'{name}'" in error.message else KafkaError(error.code, f"topic '{name}': {error.message}")
    )


def _outcome_json(name: str, outcome: CreatedTopic | KafkaError | None) -> dict[str, Any]:
    if isinstance(outcome, KafkaError):
        return {"topic": name, "error": outcome.code.name, "message": outcome.message}
    if outcome is None:
        return {"topic": name, "error": None}
    made = {"partitions": outcome.partitions, "replication_factor": outcome.replication_factor}
    return {"topic": name, "error": None, "topic_id": uuid_to_text(outcome.topic_id), **made}


def _summary(topic: TopicInfo) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": replication_factor(topic),
    }


async def _described(admin: Admin, names: Collection[str]) -> list[Description | KafkaError]:
    topics = await admin.describe_topics(names)
    there = [topic for topic in topics.values() if isinstance(topic, TopicInfo)]
    configs = await admin.describe_configs(Resource(ResourceKind.TOPIC, topic.name) for topic in there)
    described: list[Description | KafkaError] = []
    for topic in there:
        found = configs[Resource(ResourceKind.TOPIC, topic.name)]
        if isinstance(found, KafkaError):
            described.append(found)
        else:
            described.append(Description(topic, _own(found), await _offsets(admin, topic)))
    return described + [each for each in topics.values() if isinstance(each, KafkaError)]


def _own(configs: list[ConfigEntry]) -> list[ConfigEntry]:
    """What was set for the topic itself."""
    return sorted(config for config in configs if config.source is ConfigSource.DYNAMIC_TOPIC_CONFIG)


async def _offsets(admin: Admin, topic: TopicInfo) -> dict[tuple[int, OffsetSpec], int | None]:
    offsets: dict[tuple[int, OffsetSpec], int | None] = {}
    led = [each.partition_index for each in topic.partitions if each.leader >= 0]
    for spec in (EARLIEST, LATEST):
        found = await admin.list_offsets({TopicPartition(topic.name, index): spec for index in led})
        for place, outcome in found.items():
            offsets[place.partition, spec] = outcome.offset if isinstance(outcome, ListedOffset) else None
    return offsets


def _description_json(description: Description) -> dict[str, Any]:
    topic = description.topic
    partitions = [
        {
            "partition": each.partition_index,
            "leader": each.leader,
            "leader_epoch": each.leader_epoch,
            "replicas": list(each.replicas),
            "isr": list(each.isr),
            "earliest": description.offsets.get((each.partition_index, EARLIEST)),
            "latest": description.offsets.get((each.partition_index, LATEST)),
        }
        for each in topic.partitions
    ]
    configs = {config.name: config.value for config in description.configs}
    return {**_summary(topic), "partitions": partitions, "configs": configs}


def _print_description(description: Description) -> None:
    topic = description.topic
    settings = " ".join(f"{config.name}={config.value}" for config in description.configs)
    print(f"{topic.name}  id {uuid_to_text(topic.topic_id)}  {settings or 'all settings at their defaults'}")
    rows = [
        (
            each.partition_index,
            each.leader if each.leader >= 0 else "none",
            ",".join(map(str, each.replicas)),
            ",".join(map(str, each.isr)),
            _shown(description.offsets.get((each.partition_index, EARLIEST))),
            _shown(description.offsets.get((each.partition_index, LATEST))),
        )
        for each in topic.partitions
    ]
    print_table(_PARTITION_COLUMNS, rows)


def _shown(offset: int | None) -> int | str:
    return "?" if offset is None else offset
