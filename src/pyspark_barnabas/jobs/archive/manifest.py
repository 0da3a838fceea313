"""Manifests of archives: what a run has archived, and up to which offsets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.base.ids import TopicPartition

_VERSION = 1

#: The source's columns with headers, and the day (UTC).
RECORDS_DDL = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>, topic string, date string"
)


class ArchiveError(ValueError):
    """An archive that cannot be continued, or a run whose result would not be correct."""


class ArchivedFile(NamedTuple):
    """A Parquet file of a run in an object store; `key` is its name below the location of the archive."""

    key: str
    topic: str
    date: str
    size_bytes: int
    sha256: str = ""  #: of the whole file, in hexadecimal digits; empty if no manifest has it
    records_count: int = -1  #: -1 if no manifest has it


class PartSum(NamedTuple):
    """Records archived of one partition on one day (UTC); `checksum` is the sum of the row hashes modulo 2^64."""

    topic: str
    date: str
    partition: int
    records_count: int
    checksum: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class ArchiveManifest:
    """Manifest of a run; `ends` has all partitions, including those of which this run read nothing."""

    run: int
    isolation: str
    topic_ids: Mapping[str, str]  #: 32 hex digits
    starts: Mapping[TopicPartition, int]  #: of the partitions that this run read
    ends: Mapping[TopicPartition, int]
    sums: tuple[PartSum, ...] = field(default=())
    files: tuple[ArchivedFile, ...] | None = None  #: None if the run was written in a directory

    def to_json(self) -> str:
        fields: dict[str, Any] = {
            "version": _VERSION,
            "run": self.run,
            "isolation": self.isolation,
            "topicIds": dict(self.topic_ids),
            "starts": _nested(self.starts),
            "ends": _nested(self.ends),
            "sums": [part._asdict() for part in self.sums],
        }
        if self.files is not None:
            fields["files"] = [file._asdict() for file in self.files]
        return json.dumps(fields, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ArchiveManifest":
        """Parse a manifest.

        :raises ValueError: The text is not a valid manifest.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields["version"] != _VERSION:
                raise ValueError(f"unsupported version {fields['version']}; expected {_VERSION}")
            return cls(
                fields["run"],
                fields["isolation"],
                fields["topicIds"],
                _flat(fields["starts"]),
                _flat(fields["ends"]),
                tuple(PartSum(**part) for part in fields["sums"]),
                tuple(ArchivedFile(**file) for file in fields["files"]) if "files" in fields else None,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for tp, offset in sorted(offsets.items()):
        nested.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return nested


def _flat(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, offsets in nested.items()
        for partition, offset in offsets.items()
    }
