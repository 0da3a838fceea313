"""Which offset in a restored topic stands for which in the original; a directory of Parquet files, and its use."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pyarrow.dataset as ds

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.blocking import BlockingClient
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.common.client import connected
from pyspark_barnabas.jobs.restore.plan import RestoreError
from pyspark_barnabas.source.options import ConnectionOptions

#: In a map's directory.
RUNS = "offsets"


class OffsetRun(NamedTuple):
    """So many records that follow one upon the other, before and after."""

    offset: int
    restored_offset: int
    records_count: int


class RestoredOffsetMap(NamedTuple):
    """A partition's runs in the order of their offsets, and the topic that it was restored to."""

    restored_topic: str
    runs: Sequence[OffsetRun]

    def translated(self, offset: int) -> int:
        """Where a reader goes on who was to read `offset` next: at the first record that is not before it."""
        index = bisect_right(self.runs, offset, key=lambda run: run.offset) - 1
        if index >= 0 and offset < self.runs[index].offset + self.runs[index].records_count:
            run = self.runs[index]
            return run.restored_offset + offset - run.offset
        if index + 1 < len(self.runs):
            return self.runs[index + 1].restored_offset
        last = self.runs[-1]
        return last.restored_offset + last.records_count


class TranslatedOffset(NamedTuple):
    """A group's committed offset, before and after."""

    group: str
    topic: str
    partition: int
    offset: int
    restored_topic: str
    restored_offset: int


def read_map(directory: Path) -> dict[TopicPartition, RestoredOffsetMap]:
    """The map of each partition of the original topics.

    :raises RestoreError: When there is none.
    """
    if not (directory / RUNS).is_dir():
        raise RestoreError(f"{directory} has no map of offsets: restoring with --map makes one, at its end")
    runs: defaultdict[TopicPartition, list[OffsetRun]] = defaultdict(list)
    names: dict[TopicPartition, str] = {}
    for row in ds.dataset(directory / RUNS, format="parquet").to_table().to_pylist():
        place = TopicPartition(row["topic"], row["partition"])
        runs[place].append(OffsetRun(row["offset"], row["restored_offset"], row["records_count"]))
        names[place] = row["restored_topic"]
    return {place: RestoredOffsetMap(names[place], sorted(found)) for place, found in runs.items()}


def translate_groups(
    source: ConnectionOptions,
    target: ConnectionOptions,
    directory: Path,
    groups: Sequence[str],
    *,
    dry_run: bool = False,
) -> list[TranslatedOffset]:
    """Commit for groups at `target`, in restored topics, what they have committed at `source`, in the original ones.

    Topics without a map are left out. The groups must have no members.

    :raises KafkaError: What a broker has against it; some groups may have been committed then.
    """
    maps = read_map(directory)
    found: list[TranslatedOffset] = []
    with closing(connected(source)) as old, closing(connected(target)) as new:
        for group in groups:
            offsets = _committed(old, group)
            translated = [
                TranslatedOffset(
                    group, *place, offset, maps[place].restored_topic, maps[place].translated(offset)
                )
                for place, offset in sorted(offsets.items())
                if place in maps
            ]
            if translated and not dry_run:
                wanted = {
                    TopicPartition(each.restored_topic, each.partition): each.restored_offset
                    for each in translated
                }
                raise_errors(new.groups.commit_offsets(group, wanted).values())
            found += translated
    return found


def _committed(client: BlockingClient, group: str) -> Mapping[TopicPartition, int]:
    offsets = client.groups.offsets(group)
    raise_errors(each for each in offsets.values() if isinstance(each, KafkaError))
    return {place: each.offset for place, each in offsets.items() if isinstance(each, OffsetAndMetadata)}
