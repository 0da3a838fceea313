"""Map from original offsets to those in a restored topic, kept as Parquet files, and its use to translate groups."""

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
from barnabas.reading.connection import ConnectionOptions, connected
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.restore.plan import RestoreError
from pyspark_barnabas.jobs.restore.state import STATE, RestoreState

#: Name of the Parquet directory within a map's directory.
RUNS = "offsets"


class OffsetRun(NamedTuple):
    """Records with consecutive offsets both in the original and in the restored topic."""

    offset: int
    restored_offset: int
    records_count: int


class RestoredOffsetMap(NamedTuple):
    """Runs of a partition in the order of their offsets, and where it was restored."""

    restored_topic: str
    begin: int  #: the records are appended to the restored topic from this offset on
    runs: Sequence[OffsetRun]

    def translated(self, offset: int) -> int:
        """Return the restored offset of the first record at or after `offset`, where a reader continues."""
        index = bisect_right(self.runs, offset, key=lambda run: run.offset) - 1
        if index >= 0 and offset < self.runs[index].offset + self.runs[index].records_count:
            run = self.runs[index]
            return run.restored_offset + offset - run.offset
        if index + 1 < len(self.runs):
            return self.runs[index + 1].restored_offset
        if not self.runs:
            return self.begin
        last = self.runs[-1]
        return last.restored_offset + last.records_count


class TranslatedOffset(NamedTuple):
    """Committed offset of a group, in the original and in the restored topic."""

    group: str
    topic: str
    partition: int
    offset: int
    restored_topic: str
    restored_offset: int


def read_map(directory: Path) -> dict[TopicPartition, RestoredOffsetMap]:
    """Read the map of each partition of the original topics.

    :raises RestoreError: The directory has no map.
    """
    if not (directory / RUNS).is_dir():
        raise RestoreError(f"{directory} has no offset map: a completed restore with --map creates one")
    state = RestoreState.read(directory / STATE)
    if state is None:
        raise RestoreError(f"{directory} has no file {STATE}, which belongs to its offset map")
    runs: defaultdict[TopicPartition, list[OffsetRun]] = defaultdict(list)
    for row in ds.dataset(directory / RUNS, format="parquet").to_table().to_pylist():
        run = OffsetRun(row["offset"], row["restored_offset"], row["records_count"])
        runs[TopicPartition(row["topic"], row["partition"])].append(run)
    maps = {}
    for part in state.parts:
        tp = TopicPartition(part.topic, part.partition)
        maps[tp] = RestoredOffsetMap(part.restored_topic, part.begin, sorted(runs[tp]))
    return maps


def translate_groups(
    source: ConnectionOptions,
    target: ConnectionOptions,
    directory: Path,
    groups: Sequence[str],
    *,
    dry_run: bool = False,
) -> list[TranslatedOffset]:
    """Translate the groups' committed offsets at `source` and commit them for the restored topics at `target`.

    Topics without a map are skipped. The groups must have no members.

    :raises KafkaError: A request failed, or a transaction that commits offsets of a group is open
        (UNSTABLE_OFFSET_COMMIT); the offsets of some groups may have been committed already.
    """
    maps = read_map(directory)
    all_translated: list[TranslatedOffset] = []
    with closing(connected(source)) as old, closing(connected(target)) as new:
        for group in groups:
            offsets = _committed(old, group)
            translated = [
                TranslatedOffset(group, *tp, offset, maps[tp].restored_topic, maps[tp].translated(offset))
                for tp, offset in sorted(offsets.items())
                if tp in maps
            ]
            if translated and not dry_run:
                new_offsets = {
                    TopicPartition(entry.restored_topic, entry.partition): entry.restored_offset
                    for entry in translated
                }
                raise_errors(new.groups.commit_offsets(group, new_offsets).values())
            all_translated += translated
    return all_translated


def _committed(client: BlockingClient, group: str) -> Mapping[TopicPartition, int]:
    offsets = client.groups.offsets(group, stable=True)
    raise_errors(result for result in offsets.values() if isinstance(result, KafkaError))
    return {tp: result.offset for tp, result in offsets.items() if isinstance(result, OffsetAndMetadata)}
