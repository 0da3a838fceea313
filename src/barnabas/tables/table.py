"""The protocol of tables in a format: `delta`, `iceberg`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from barnabas.base.clock import Clock
from barnabas.base.ids import uuid_to_text
from barnabas.objects.location import Location
from barnabas.objects.settings import StoreSettings
from barnabas.tables.data_files import DataFile
from barnabas.tables.errors import ConcurrentCommit

#: The table properties that name the topic.
TOPIC_PROPERTY = "barnabas.topic"
TOPIC_ID_PROPERTY = "barnabas.topic.id"


class TopicIdentity(NamedTuple):
    """The topic of a table. The id differs from that of an earlier topic of the name."""

    name: str
    topic_id: bytes

    @property
    def id_text(self) -> str:
        return uuid_to_text(self.topic_id)


class OffsetAdvance(NamedTuple):
    """The rows of a partition in a commit."""

    #: the table's next offset before the commit; None if it has no records of the partition
    before: int | None
    after: int  #: the next offset after the commit


class TableFile(NamedTuple):
    """A data file of the current version of a table."""

    path: str  #: below the location of the table
    size_bytes: int
    rows_count: int
    lowest_ms: int | None  #: bounds of the records' timestamps; None if they are unknown
    highest_ms: int | None


class TableSummary(NamedTuple):
    """The current version of a table."""

    version: str  #: version of Delta, snapshot id of Iceberg; empty without a commit
    committed_ms: int | None  #: the time of the last commit


@dataclass(frozen=True)
class TableAccess:
    """What is needed to open or create the table of a topic."""

    location: Location
    identity: TopicIdentity
    store_settings: StoreSettings
    catalog: Mapping[str, str] = field(repr=False)  #: properties of Iceberg's catalog
    new_name: Callable[[], str]  #: returns a name that no file has
    clock: Clock


def check_advances(known: Mapping[int, int], advances: Mapping[int, OffsetAdvance]) -> None:
    """Check that rows continue where the table ends.

    :raises ConcurrentCommit: They do not, because another writer was first.
    """
    for partition, (before, _) in advances.items():
        if known.get(partition) != before:
            raise ConcurrentCommit(
                f"partition {partition} was at offset {before}, and is at {known.get(partition)} now"
            )


class StoredTable(Protocol):
    """A table at its location. All changes are commits: complete or not made."""

    @property
    def schema(self) -> pa.Schema:
        """The columns; types are those of `evolution.storable`."""
        ...

    @property
    def file_schema(self) -> pa.Schema:
        """The same columns as files have them."""
        ...

    @property
    def data_directory(self) -> str:
        """The directory of new files below the location: empty, or with a slash at its end."""
        ...

    def refresh(self) -> None:
        """Read the newest version of the table."""
        ...

    def next_offsets(self, partitions: Sequence[int]) -> dict[int, int]:
        """Return the offset behind the last record of each partition that the table has; others are left out."""
        ...

    def extend(self, schema: pa.Schema) -> None:
        """Add the columns and nested fields of a merged schema.

        :raises ConcurrentCommit: If another writer was first.
        """
        ...

    def append(self, files: Sequence[DataFile], advances: Mapping[int, OffsetAdvance]) -> None:
        """Commit rows together with the offsets behind them, by partition.

        :raises ConcurrentCommit: If the table has other offsets than those from which the rows continue.
        """
        ...

    def files(self) -> list[TableFile]:
        """Return the data files, without those in which other writers have marked deleted rows."""
        ...

    def replace(self, removed: Sequence[TableFile], added: Sequence[DataFile], *, changes_rows: bool) -> None:
        """Commit files in place of others.

        :param changes_rows: False if the table has the same rows as before.
        :raises ConcurrentCommit: If another writer committed since the last `refresh`.
        """
        ...

    def clean(self, history_ms: int) -> int:
        """Forget versions that are older, and delete files that no other version has; return the number of files."""
        ...

    def summary(self) -> TableSummary: ...
