"""What is to be restored from an archive, and into which topics."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import BROKER_DEFAULT, NewTopic
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression
from pyspark_barnabas.jobs.archive.job import SELECTIONS
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from pyspark_barnabas.source.options import ConnectionOptions, batch_options

#: So that old records are not removed as soon as they are back.
KEEP = {"retention.ms": "-1", "retention.bytes": "-1"}


class RestoreError(ValueError):
    """What cannot be restored as it should be, or did not come out as it should have."""


class ArchivedPart(NamedTuple):
    """A partition in an archive, over all runs."""

    topic: str
    partition: int
    start: int
    end: int
    records_count: int


@dataclass(frozen=True)
class Request:
    """What is to be restored, and how."""

    options: Mapping[str, str]  #: of the source: how to reach the cluster
    directory: Path
    topics: Sequence[str] = ()  #: of the archive; none for all
    name: str = ""  #: of the topic that is made, where it is one and to have another name
    configs: Mapping[str, str] | None = None  #: of topics that are made
    compression: Compression = Compression.ZSTD

    def target_of(self, topic: str) -> str:
        """The topic that gets the records of another."""
        return self.name or topic

    def connection(self) -> ConnectionOptions:
        """How to reach the cluster."""
        given = {name: value for name, value in self.options.items() if name.lower() not in SELECTIONS}
        return batch_options({**given, "subscribePattern": ".*"}).connection


def archived_partitions(target: ArchiveTarget, topics: Sequence[str]) -> list[ArchivedPart]:
    """What the archive has of these topics, or all that it has.

    :raises RestoreError: For a topic that it does not have.
    """
    runs = [target.manifest(run) for run in target.runs()]
    ends = runs[-1].ends if runs else {}
    known = {place.topic for place in ends}
    for topic in topics:
        if topic not in known:
            have = ", ".join(sorted(known)) or "nothing"
            raise RestoreError(f"the archive has nothing of topic '{topic}'; it has: {have}")
    starts: dict[TopicPartition, int] = {}
    counts: defaultdict[TopicPartition, int] = defaultdict(int)
    for run in runs:
        for place, start in run.starts.items():
            starts.setdefault(place, start)
        for part in run.sums:
            counts[TopicPartition(part.topic, part.partition)] += part.records_count
    return [
        ArchivedPart(*place, starts.get(place, end), end, counts[place])
        for place, end in sorted(ends.items())
        if not topics or place.topic in topics
    ]


class Targets(NamedTuple):
    """The topics that get the records."""

    partitions: Mapping[str, int]  #: how many each has, or is to have
    missing: tuple[str, ...]  #: those that are to be made
    bounds: Mapping[TopicPartition, tuple[int, int]]  #: first offset and end in those that are there

    def bounds_of(self, place: TopicPartition) -> tuple[int, int]:
        """First offset and end; of a topic that is to be made, none."""
        return self.bounds.get(place, (0, 0))


def find_targets(client: BlockingClient, request: Request, wanted: Sequence[ArchivedPart]) -> Targets:
    """Look what there is of the topics.

    :raises RestoreError: For one that has another number of partitions, or names that do not fit.
    """
    partitions: dict[str, int] = {}
    for each in wanted:
        name = request.target_of(each.topic)
        partitions[name] = max(partitions.get(name, 0), each.partition + 1)
    if request.name and len({each.topic for each in wanted}) != 1:
        raise RestoreError(f"'{request.name}' can be the name of one topic: say which one of the archive's")
    found = client.admin.describe_topics(list(partitions))
    missing = tuple(name for name in partitions if _is_missing(found[name]))
    bounds: dict[TopicPartition, tuple[int, int]] = {}
    for name, count in partitions.items():
        topic = found[name]
        if name in missing:
            continue
        if not isinstance(topic, TopicInfo):
            raise topic
        if len(topic.partitions) != count:
            message = f"topic '{name}' has {len(topic.partitions)} partitions, and {count} are archived"
            raise RestoreError(message)
        bounds |= _bounds(client, [TopicPartition(name, index) for index in range(count)])
    return Targets(partitions, missing, bounds)


def _is_missing(found: TopicInfo | KafkaError) -> bool:
    return isinstance(found, KafkaError) and found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _bounds(
    client: BlockingClient, places: Sequence[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    firsts, ends = (_offsets(client, dict.fromkeys(places, spec)) for spec in (EARLIEST, LATEST))
    return {place: (firsts[place], ends[place]) for place in places}


def _offsets(client: BlockingClient, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
    found = client.admin.list_offsets(specs)
    raise_errors(found.values())
    return {place: each.offset for place, each in found.items() if isinstance(each, ListedOffset)}


def create_missing(
    client: BlockingClient, request: Request, targets: Targets, replication_factor: int = BROKER_DEFAULT
) -> None:
    """Make the topics that are not there.

    :raises KafkaError: Why one was not made.
    """
    configs: dict[str, str | None] = {**KEEP, **(request.configs or {})}
    topics = [
        NewTopic(name, targets.partitions[name], replication_factor, configs) for name in targets.missing
    ]
    if topics:
        outcomes = client.admin.create_topics(topics)
        raise_errors(each for each in outcomes.values() if isinstance(each, KafkaError))


def check_retention(
    client: BlockingClient, request: Request, target: ArchiveTarget, targets: Targets, now_ms: int
) -> None:
    """See that topics that are there would not remove what comes back at once.

    :raises RestoreError: For one that would.
    :raises KafkaError: When a broker may not tell.
    """
    there = sorted(targets.partitions.keys() - set(targets.missing))
    oldest: dict[str, str] = {}
    for run in target.runs():
        for part in target.manifest(run).sums:
            if part.records_count and part.date and (not request.topics or part.topic in request.topics):
                name = request.target_of(part.topic)
                oldest[name] = min(part.date, oldest.get(name, part.date))
    resources = [Resource(ResourceKind.TOPIC, name) for name in there if name in oldest]
    described = client.admin.describe_configs(resources, ["retention.ms", "cleanup.policy"])
    for resource, entries in described.items():
        if isinstance(entries, KafkaError):
            raise entries
        found = {each.name: each.value or "" for each in entries}
        decide_retention(resource.name, found, oldest[resource.name], now_ms)


def decide_retention(topic: str, configs: Mapping[str, str], oldest: str, now_ms: int) -> None:
    """Hold a topic's retention against the day (UTC) of its oldest record.

    :raises RestoreError: When that would be removed.
    """
    retention_ms = int(configs["retention.ms"])
    day_ms = int(datetime.fromisoformat(oldest).replace(tzinfo=UTC).timestamp() * 1_000)
    if "delete" in configs["cleanup.policy"] and 0 <= retention_ms < now_ms - day_ms:
        message = (
            f"topic '{topic}' has retention.ms={retention_ms}, and archived records are of {oldest}: they would be "
            "removed at once; set retention.ms to -1 until you have what you want"
        )
        raise RestoreError(message)
