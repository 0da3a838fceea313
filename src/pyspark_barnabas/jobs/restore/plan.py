"""Plan of a restore: archived partitions, target topics, and their retention."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import BROKER_DEFAULT, NewTopic
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.objects.location import Location
from barnabas.objects.settings import StoreSettings
from barnabas.reading.connection import ConnectionOptions
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression
from pyspark_barnabas.jobs.archive.archive import Archive
from pyspark_barnabas.jobs.archive.job import SELECTIONS
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.archive.snapshot import ArchiveSnapshot
from pyspark_barnabas.source.options import batch_options

#: Configs of created topics, so that retention does not remove the old records immediately.
KEEP = {"retention.ms": "-1", "retention.bytes": "-1"}


class RestoreError(ValueError):
    """A restore is not possible as requested, or its result is not correct."""


class ArchivedPart(NamedTuple):
    """A partition in an archive, over all runs."""

    topic: str
    partition: int
    start: int
    end: int
    records_count: int


@dataclass(frozen=True)
class Request:
    """Topics to restore, and how."""

    options: Mapping[str, str]  #: connection options of the source
    directory: Location
    topics: Sequence[str] = ()  #: topics of the archive; empty for all
    name: str = ""  #: new name of the topic, if one topic is restored under another name
    configs: Mapping[str, str] | None = None  #: configs of topics that are created
    compression: Compression = Compression.ZSTD
    run: int | None = None  #: restore the archive as it was after this run; None for the newest
    settings: StoreSettings | None = None  #: of an object store, preceding those of the environment

    def archive(self) -> ArchiveSnapshot:
        """Open the archive.

        :raises ArchiveError: It does not have the run, or a manifest is missing or damaged.
        """
        return ArchiveSnapshot(open_archive(self.directory, settings=self.settings), self.run)

    def target_of(self, topic: str) -> str:
        """Return the topic that receives the records of an archived topic."""
        return self.name or topic

    def connection(self) -> ConnectionOptions:
        """Return the connection options of the cluster."""
        options = {name: value for name, value in self.options.items() if name.lower() not in SELECTIONS}
        return batch_options({**options, "subscribePattern": ".*"}).connection


def archived_partitions(target: Archive, topics: Sequence[str]) -> list[ArchivedPart]:
    """Return the archived partitions of these topics, or of all topics.

    :raises RestoreError: The archive does not have a topic.
    """
    runs = [target.manifest(run) for run in target.runs()]
    ends = runs[-1].ends if runs else {}
    known = {tp.topic for tp in ends}
    for topic in topics:
        if topic not in known:
            names = ", ".join(sorted(known)) or "no topics"
            raise RestoreError(f"the archive does not contain topic '{topic}'; it contains: {names}")
    starts: dict[TopicPartition, int] = {}
    counts: defaultdict[TopicPartition, int] = defaultdict(int)
    for run in runs:
        for tp, start in run.starts.items():
            starts.setdefault(tp, start)
        for part in run.sums:
            counts[TopicPartition(part.topic, part.partition)] += part.records_count
    return [
        ArchivedPart(*tp, starts.get(tp, end), end, counts[tp])
        for tp, end in sorted(ends.items())
        if not topics or tp.topic in topics
    ]


class Targets(NamedTuple):
    """Topics that receive the records."""

    partitions: Mapping[str, int]  #: partition count of each topic, existing or to be created
    missing: tuple[str, ...]  #: topics that will be created
    bounds: Mapping[
        TopicPartition, tuple[int, int]
    ]  #: first offset and end of each partition of existing topics

    def bounds_of(self, tp: TopicPartition) -> tuple[int, int]:
        """Return first offset and end; (0, 0) for a topic that does not exist yet."""
        return self.bounds.get(tp, (0, 0))


def find_targets(client: BlockingClient, request: Request, archived: Sequence[ArchivedPart]) -> Targets:
    """Describe the target topics.

    :raises RestoreError: A topic has another number of partitions, or one name is given for several topics.
    """
    partitions: dict[str, int] = {}
    for part in archived:
        name = request.target_of(part.topic)
        partitions[name] = max(partitions.get(name, 0), part.partition + 1)
    if request.name and len({part.topic for part in archived}) != 1:
        raise RestoreError(
            f"'{request.name}' can be the new name of one topic only: select one topic of the archive"
        )
    described = client.admin.describe_topics(list(partitions))
    missing = tuple(name for name in partitions if _is_missing(described[name]))
    bounds: dict[TopicPartition, tuple[int, int]] = {}
    for name, count in partitions.items():
        topic = described[name]
        if name in missing:
            continue
        if not isinstance(topic, TopicInfo):
            raise topic
        if len(topic.partitions) != count:
            message = f"topic '{name}' has {len(topic.partitions)} partitions, but {count} are archived"
            raise RestoreError(message)
        bounds |= _bounds(client, [TopicPartition(name, index) for index in range(count)])
    return Targets(partitions, missing, bounds)


def _is_missing(topic: TopicInfo | KafkaError) -> bool:
    return isinstance(topic, KafkaError) and topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _bounds(
    client: BlockingClient, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    firsts, ends = (_offsets(client, dict.fromkeys(partitions, spec)) for spec in (EARLIEST, LATEST))
    return {tp: (firsts[tp], ends[tp]) for tp in partitions}


def _offsets(client: BlockingClient, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
    listed = client.admin.list_offsets(specs)
    raise_errors(listed.values())
    return {tp: result.offset for tp, result in listed.items() if isinstance(result, ListedOffset)}


def create_missing(
    client: BlockingClient, request: Request, targets: Targets, replication_factor: int = BROKER_DEFAULT
) -> None:
    """Create the missing topics.

    :raises KafkaError: A topic could not be created.
    """
    configs: dict[str, str | None] = {**KEEP, **(request.configs or {})}
    topics = [
        NewTopic(name, targets.partitions[name], replication_factor, configs) for name in targets.missing
    ]
    if topics:
        responses = client.admin.create_topics(topics)
        raise_errors(response for response in responses.values() if isinstance(response, KafkaError))


def check_retention(
    client: BlockingClient, request: Request, target: Archive, targets: Targets, now_ms: int
) -> None:
    """Check that retention of existing topics would not remove the restored records immediately.

    :raises RestoreError: It would.
    :raises KafkaError: Describing the configs failed.
    """
    existing = sorted(targets.partitions.keys() - set(targets.missing))
    oldest: dict[str, str] = {}
    for run in target.runs():
        for part in target.manifest(run).sums:
            if part.records_count and part.date and (not request.topics or part.topic in request.topics):
                name = request.target_of(part.topic)
                oldest[name] = min(part.date, oldest.get(name, part.date))
    resources = [Resource(ResourceKind.TOPIC, name) for name in existing if name in oldest]
    described = client.admin.describe_configs(resources, ["retention.ms", "cleanup.policy"])
    for resource, entries in described.items():
        if isinstance(entries, KafkaError):
            raise entries
        configs = {entry.name: entry.value or "" for entry in entries}
        decide_retention(resource.name, configs, oldest[resource.name], now_ms)


def decide_retention(topic: str, configs: Mapping[str, str], oldest: str, now_ms: int) -> None:
    """Compare a topic's retention with the day (UTC) of its oldest archived record.

    :raises RestoreError: The record would be removed.
    """
    retention_ms = int(configs["retention.ms"])
    day_ms = int(datetime.fromisoformat(oldest).replace(tzinfo=UTC).timestamp() * 1_000)
    if "delete" in configs["cleanup.policy"] and 0 <= retention_ms < now_ms - day_ms:
        message = (
            f"topic '{topic}' has retention.ms={retention_ms}, and the oldest archived records are of {oldest}: they "
            "would be removed immediately; set retention.ms=-1 for the restore"
        )
        raise RestoreError(message)
